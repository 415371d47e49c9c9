"""Determines which fields of a plan are relevant, given the other fields.

The form hides irrelevant fields; they have their default in the plan.
"""

from collections.abc import Callable, Container, Mapping, Sequence

from accel_engine.data.folders.layout import READERS_OF_IMAGES
from accel_engine.devices.device_types import Device
from accel_engine.models import UserModel
from accel_engine.plan import DEFAULTS, Plan
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
    rule = _RULES.get(name)
    return rule is None or rule(resolved, devices)


def drop_irrelevant(plan: Plan, devices: Devices) -> Plan:
    """Return the plan with irrelevant fields at their default."""
    resolved = resolve(plan)
    return plan.replace(**{name: DEFAULTS[name] for name in _RULES if not is_relevant(name, resolved, devices)})


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


def _has_window(resolved: ResolvedPlan, _: Devices) -> bool:
    """Whether an example may be a window: of a table in the order of a column, of arrays, or of a text."""
    reader = resolved.data.reader
    return reader in ("npz", _FUNCTION) or reader in _TEXTS | _LISTS or (reader in _TABLES and bool(resolved.plan.time))


def _has_columns(resolved: ResolvedPlan, _: Devices) -> bool:
    """Whether the plan can name columns or arrays: those of a function only for time series."""
    reader = resolved.data.reader
    return reader in _ARRAYS or (reader == _FUNCTION and resolved.plan.window is not None)


def _may_weight_classes(resolved: ResolvedPlan, _: Devices) -> bool:
    """Whether an example of the user's data may have one class; built-in data is balanced."""
    data, plan = resolved.data, resolved.plan
    task = data.task if plan.task == "auto" else plan.task
    is_possible = _is_own_data(resolved) and data.classes != 0 and task in ("auto", "classification", "custom")
    return is_possible or bool(plan.class_weight)


_RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("target", "features", "ignore"), _has_columns),
    **dict.fromkeys(("kinds", "time"), _of_data(_TABLES)),
    "window": _has_window,
    "horizon": lambda resolved, devices: (
        _has_window(resolved, devices)
        and resolved.data.reader not in _TEXTS | _LISTS
        and bool(resolved.plan.time or resolved.plan.window)
    ),
    "group": lambda resolved, devices: _has_window(resolved, devices) and bool(resolved.plan.time),
    "tokenizer": _of_data(_TEXTS),
    **dict.fromkeys(("split", "validation_split", "validation_data"), _of_unsplit_data("validation")),
    "test_split": _of_unsplit_data("test"),
    "validation_steps": _of_data({_FUNCTION}),
    "class_weight": _may_weight_classes,
    "invalid_examples": lambda resolved, _: _is_own_data(resolved),
    **{name: _of_own_work(name) for name in ("task", "last_batch", "shuffle", "monitor", "scale")},
    "devices": lambda resolved, _: resolved.strategy.kind != "tpu",  # a TPU is used as a whole
    "virtual_cpus": _splits_cpu,
    "force": lambda resolved, devices: (
        resolved.plan.precision == "mixed_float16" and _kind(resolved, devices) in ("cpu", "")
    ),
    "cpu_kernels": lambda resolved, devices: _kind(resolved, devices) in ("cpu", ""),
    "memory_growth": _on_gpus("memory_growth"),
    "memory_limit": _on_gpus("memory_limit"),
    "reduction": lambda resolved, _: len(resolved.strategy.reductions) > 1,
    "local_workers": lambda resolved, _: resolved.strategy.processes,
    "tpu": lambda resolved, _: resolved.strategy.kind == "tpu",
    "rate_scaling": lambda resolved, _: resolved.strategy.maximum_devices != 1,
    "image_size": lambda resolved, _: resolved.data.reader in READERS_OF_IMAGES or resolved.data.needs_engine,
}
"""The rules of the fields that are not always relevant."""
