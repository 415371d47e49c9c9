"""Determines which fields of a plan are relevant, given the other fields.

The form hides irrelevant fields; they have their default in the plan.
"""

from collections.abc import Callable, Container, Mapping, Sequence

from accel_engine.data.folders.layout import READERS_OF_IMAGES
from accel_engine.devices.device_types import Device
from accel_engine.models import UserModel
from accel_engine.plan import DEFAULTS, Plan
from accel_engine.plan.field_needs import NEEDS
from accel_engine.plan.resolved_plan import ResolvedPlan, resolve

Devices = Sequence[Device] | None
Rule = Callable[[ResolvedPlan, Devices], bool]


def is_relevant(name: str, resolved: ResolvedPlan, devices: Devices) -> bool:
    """Whether a field is relevant.

    Args:
        name: The field.
        resolved: The plan, which may have values in irrelevant fields.
        devices: The devices of the machine; ``None`` before they are known, when fields of special
            hardware are relevant if they have a value.
    """
    need, rule = NEEDS.get(name), _RULES.get(name)
    return (need is None or need.is_met(resolved.plan)) and (rule is None or rule(resolved, devices))


def drop_irrelevant(plan: Plan, devices: Devices) -> Plan:
    """Return the plan with irrelevant fields at their default."""
    resolved = resolve(plan)
    return plan.replace(**{name: DEFAULTS[name] for name in DEFAULTS if not is_relevant(name, resolved, devices)})


def _kind(resolved: ResolvedPlan, devices: Devices) -> str:
    """The kind of device that would train; empty while unknown."""
    plan = resolved.plan
    if resolved.strategy.kind:
        return resolved.strategy.kind
    if plan.devices:
        return plan.devices[0].lower().partition(":")[0]
    if plan.virtual_cpus > 1:
        return "cpu"
    if devices is None:
        return ""
    return "gpu" if _gpus(devices) else "cpu"


def _gpus(devices: Devices) -> int:
    return sum(device.kind == "gpu" for device in devices or ())


def _splits_cpu(resolved: ResolvedPlan, devices: Devices) -> bool:
    # With a single GPU, logical CPU devices are the only way to test a multi-device strategy.
    kind = _kind(resolved, devices)
    return kind in ("cpu", "") or (kind == "gpu" and not resolved.plan.devices and _gpus(devices) == 1)


def _on_gpus(name: str) -> Rule:
    def rule(resolved: ResolvedPlan, devices: Devices) -> bool:
        kind = _kind(resolved, devices)
        return kind == "gpu" or (not kind and getattr(resolved.plan, name) != DEFAULTS[name])

    return rule


_TABLES = frozenset({"tables.table", "prepared.hugging_face", "prepared.tensorflow_datasets", "prepared.tfrecord"})
_TEXTS = frozenset({"texts.language_text"})
_ARRAYS = _TABLES | {"npz"}
"""The readers of tables, of texts for language models, and of all data with named columns or arrays."""

_LISTS = frozenset({"prepared.hugging_face", "prepared.tensorflow_datasets"})
"""The readers of data with lists of several lengths, which are padded to a window."""

_FUNCTION = "python_source.source"
"""The reader of what a function of the user returns."""


def _of_data(readers: Container[str]) -> Rule:
    """A field of the data of certain readers."""
    return lambda resolved, _: resolved.data.reader in readers


def _of_unsplit_data(split: str) -> Rule:
    """A field of the user's own data, unless it has this split of its own."""
    return lambda resolved, _: _is_own_data(resolved) and split not in resolved.data.own_splits


def _of_own_work(name: str) -> Rule:
    """A field of the user's own data or model, or one that has a value; built-in ones do not need it."""
    return lambda resolved, _: (
        _is_own_data(resolved)
        or isinstance(resolved.model, UserModel)
        or getattr(resolved.plan, name) != DEFAULTS[name]
    )


def _is_own_data(resolved: ResolvedPlan) -> bool:
    return resolved.data.is_own


def _has_window(resolved: ResolvedPlan, devices: Devices) -> bool:
    """Whether an example may be a window: of a table in the order of a column, of arrays, or of a text."""
    reader = resolved.data.reader
    return reader in ("npz", _FUNCTION) or reader in _TEXTS | _LISTS or _has_time(resolved, devices)


def _has_time(resolved: ResolvedPlan, _: Devices) -> bool:
    """Whether an example may be a window of a table in the order of a column."""
    return resolved.data.reader in _TABLES and bool(resolved.plan.time)


def _has_columns(resolved: ResolvedPlan, _: Devices) -> bool:
    """Whether the plan can name columns or arrays: those of a function only for time series."""
    reader = resolved.data.reader
    return reader in _ARRAYS or (reader == _FUNCTION and resolved.plan.window is not None)


def _may_weight_classes(resolved: ResolvedPlan, _: Devices) -> bool:
    """Whether an example of the user's data may have one class; built-in data is balanced."""
    data, plan, task = resolved.data, resolved.plan, _task(resolved)
    is_possible = _is_own_data(resolved) and data.classes != 0 and task in ("auto", "classification", "custom")
    return is_possible or bool(plan.class_weight)


def _of_file_models(resolved: ResolvedPlan, _: Devices) -> bool:
    """Whether the model is read from a ``FILE.keras``."""
    return isinstance(resolved.model, UserModel) and resolved.model.kind == "saved"


def _has_images(resolved: ResolvedPlan, _: Devices) -> bool:
    """Whether an example is an image, or may be one."""
    data = resolved.data
    is_image = data.kind == "images" if data.shape is None else len(data.shape) == 3
    return is_image or data.needs_engine or bool(resolved.plan.augmentation)


def _task(resolved: ResolvedPlan) -> str:
    return resolved.data.task if resolved.plan.task == "auto" else resolved.plan.task


def _may_have_classes(resolved: ResolvedPlan, _: Devices) -> bool:
    """Whether what is learned may be classes."""
    return _task(resolved) in ("auto", "classification", "multi-label", "custom")


_RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("target", "features", "ignore"), _has_columns),
    **dict.fromkeys(("kinds", "time"), _of_data(_TABLES)),
    "window": _has_window,
    "horizon": lambda resolved, devices: (
        _has_window(resolved, devices)
        and resolved.data.reader not in _TEXTS | _LISTS
        and bool(resolved.plan.window or _has_time(resolved, devices))
    ),
    "group": _has_time,
    "tokenizer": _of_data(_TEXTS),
    **dict.fromkeys(("split", "validation_split", "split_seed", "validation_data"), _of_unsplit_data("validation")),
    "test_split": _of_unsplit_data("test"),
    "validation_steps": lambda resolved, _: resolved.data.reader == _FUNCTION,
    "label_smoothing": _may_have_classes,
    "augmentation": _has_images,
    **dict.fromkeys(("custom_objects", "unsafe_load"), _of_file_models),
    "class_weight": _may_weight_classes,
    "invalid_examples": lambda resolved, _: _is_own_data(resolved),
    **{name: _of_own_work(name) for name in ("task", "last_batch", "shuffle", "scale")},
    "devices": lambda resolved, _: resolved.strategy.kind != "tpu",  # a TPU is used as a whole
    "virtual_cpus": _splits_cpu,
    "force": lambda resolved, devices: (
        resolved.plan.precision == "mixed_float16" and _kind(resolved, devices) in ("cpu", "")
    ),
    **dict.fromkeys(("cpu_kernels", "threads"), lambda resolved, devices: _kind(resolved, devices) in ("cpu", "")),
    "memory_growth": _on_gpus("memory_growth"),
    "memory_limit": _on_gpus("memory_limit"),
    "reduction": lambda resolved, _: len(resolved.strategy.reductions) > 1,
    **dict.fromkeys(("local_workers", "isolate_workers"), lambda resolved, _: resolved.strategy.processes),
    "tpu": lambda resolved, _: resolved.strategy.kind == "tpu",
    "rate_scaling": lambda resolved, _: resolved.strategy.maximum_devices != 1,
    "image_size": lambda resolved, _: resolved.data.reader in READERS_OF_IMAGES or resolved.data.needs_engine,
}
"""The rules of the fields that are not always relevant, besides what they need of other fields."""

_PURPOSES: Mapping[str, str] = {
    **dict.fromkeys(("target", "features", "ignore"), "of tables and named arrays"),
    **dict.fromkeys(("kinds", "time"), "of tables"),
    "window": "of time series, arrays and texts",
    **dict.fromkeys(("horizon", "group"), "of time series"),
    "tokenizer": "of texts for language models",
    "image_size": "of folders of images",
    **dict.fromkeys(
        ("split", "validation_split", "split_seed", "validation_data", "test_split"),
        "of data without splits of its own",
    ),
    **dict.fromkeys(("task", "last_batch", "shuffle", "scale"), "of your own data or model"),
    "invalid_examples": "of your own data",
    "class_weight": "of your own data with classes",
    "validation_steps": "of data from a Python function",
    "label_smoothing": "needs a crossentropy loss of classes",
    "augmentation": "of images",
    **dict.fromkeys(("custom_objects", "unsafe_load"), "needs a model in a FILE.keras"),
    "rate_scaling": "needs a strategy with several devices",
    "reduction": "needs a strategy with several devices",
    **dict.fromkeys(("local_workers", "isolate_workers"), "needs the strategy multi-worker or parameter-server"),
    "tpu": "needs the strategy tpu",
    "devices": "not with a TPU, which is used as a whole",
    "force": "needs the precision mixed_float16 on a CPU",
    **dict.fromkeys(("virtual_cpus", "cpu_kernels", "threads"), "of CPUs"),
    **dict.fromkeys(("memory_growth", "memory_limit"), "of GPUs"),
}
"""What the fields with rules are for."""


def needs(name: str) -> str:
    """What would make a field relevant, in a few words."""
    return _PURPOSES[name] if name in _PURPOSES else f"needs {NEEDS[name].what}"
