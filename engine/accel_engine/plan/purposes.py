"""The data, models, strategies and devices that fields of a plan are for, a part of their entries; no TensorFlow."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from accel_engine.data import DatasetEntry, source_of
from accel_engine.data.source import Source
from accel_engine.devices.device_types import Device
from accel_engine.errors import FieldValue, Words
from accel_engine.models import AutoModel, ModelEntry, UserModel
from accel_engine.strategies import StrategyEntry


@dataclass(frozen=True, slots=True)
class Situation:
    """The data, the model and the machine with which a plan is trained, as far as they are known."""

    plan: Any
    """The fields of the plan."""
    strategy: StrategyEntry
    model: ModelEntry | AutoModel | UserModel
    data: DatasetEntry
    kind: str = ""
    """The kind of device that trains: ``cpu``, ``gpu`` or ``tpu``; empty while it is unknown."""
    gpus: int = 0
    """Number of GPUs of the machine."""

    @property
    def task(self) -> str:
        """The task; ``auto`` if neither the plan nor the data tells it."""
        return self.data.task if self.plan.task == "auto" else str(self.plan.task)

    @property
    def source(self) -> type[Source]:
        """The class that reads the data, which knows what can be asked of it."""
        return source_of(self.data)


def kind_of_devices(plan: Any, strategy: StrategyEntry, devices: Sequence[Device] | None) -> str:
    """The kind of device that trains a plan; empty while it is unknown.

    Args:
        plan: The fields of the plan.
        strategy: Its strategy.
        devices: The machine's devices; ``None`` before they are known.
    """
    if strategy.kind:
        return strategy.kind
    if plan.devices:
        return str(plan.devices[0]).lower().partition(":")[0]
    if plan.virtual_cpus > 1:
        return "cpu"
    if devices is None:
        return ""
    return "gpu" if any(device.kind == "gpu" for device in devices) else "cpu"


Condition = Callable[[Situation], bool]


def _data_is(situation: Situation) -> Words:
    data = situation.data
    if data.is_own:
        return (f"; data is {data.name}",)
    return (f": it has no effect on built-in data, such as {data.name}; leave it out, or give your own ", _DATA)


def _rows_are(situation: Situation) -> Words:
    """Why an example is not a window of rows."""
    if situation.source.may_be_series:
        return ": set ", FieldValue("window", "24")
    return _data_is(situation)


def _made_up(situation: Situation) -> Words:
    return (f"; data is {situation.data.name}",)


def _device_is(situation: Situation) -> Words:
    return (f"; a {situation.kind.upper()} trains: leave it out",)


def _strategy_is(situation: Situation) -> Words:
    return (f"; the strategy is {situation.strategy.name}",)


def _model_is(situation: Situation) -> Words:
    return (f"; the model is {situation.plan.model}",)


def _task_is(situation: Situation) -> Words:
    return (f"; the data is for {situation.task}",)


_DATA = FieldValue("data")


@dataclass(frozen=True, slots=True)
class Purpose:
    """The purpose of a field."""

    what: str
    """What it is, in plain words, after ``only for``."""
    has_effect: Condition
    """Whether the field has an effect. A new run whose plan sets it in vain is refused."""
    found: Callable[[Situation], Words] = _data_is
    """What there is instead, to end the message."""
    is_shown: Condition | None = None
    """Whether the form shows it although it has no value; if it has an effect, by default."""
    is_refused: bool = True
    """Whether a value without effect is refused; not if what it asks for is so anyway."""

    def is_relevant(self, situation: Situation, *, has_value: bool) -> bool:
        """Whether the form shows the field."""
        if self.is_shown is None:
            return self.has_effect(situation)
        return self.is_shown(situation) or (has_value and self.has_effect(situation))

    def words(self, situation: Situation) -> Words:
        """The message of a plan that sets the field in vain."""
        return (f"only for {self.what}", *self.found(situation))


def rarely(what: str, is_shown: Condition) -> Purpose:
    """The purpose of a field that always has an effect, and that the form shows where it is usual, or has a value."""
    return Purpose(what, lambda _: True, is_shown=is_shown)


def _has_columns(situation: Situation) -> bool:
    """Whether a plan can name columns or arrays; for a function, only in time series."""
    return situation.source.has_columns or _is_series(situation)


def _is_series(situation: Situation) -> bool:
    """Whether examples are windows of rows."""
    return situation.source.may_be_series and situation.plan.window is not None


def _is_ordered(situation: Situation) -> bool:
    """Whether the rows of a table are in the order of a column."""
    return situation.source.is_table and bool(situation.plan.time)


def _may_be_ordered(situation: Situation) -> bool:
    return situation.source.is_table or _is_series(situation)


def _usually_has_several_series(situation: Situation) -> bool:
    return _is_ordered(situation) or (_is_series(situation) and not situation.source.is_table)


def _usually_has_windows(situation: Situation) -> bool:
    """Whether examples usually are windows; in a table, only if its rows are in the order of a column."""
    source = situation.source
    return (source.takes_window and not source.is_table) or _is_ordered(situation)


def _takes_other_validation(situation: Situation) -> bool:
    return situation.data.is_own and situation.source.takes_validation_data


def _is_own(situation: Situation) -> bool:
    return situation.data.is_own


def _may_split(split: str) -> Condition:
    """Whether examples of a split may be taken from the training examples of the user's data."""
    return lambda situation: situation.data.is_own and split not in situation.data.own_splits


def _splits_off_validation(situation: Situation) -> bool:
    """Whether a share of the examples is for validation."""
    plan = situation.plan
    is_shared = not plan.validation_data and plan.split != "none" and not plan.split.startswith("column:")
    return is_shared and _may_split("validation")(situation)


def _why_not_split_off(situation: Situation) -> Words:
    if situation.plan.validation_data:
        return "; the plan has ", FieldValue("validation_data")
    if not situation.data.is_own or "validation" in situation.data.own_splits:
        return _data_is(situation)
    return "; the plan has ", FieldValue("split", situation.plan.split)


def _is_own_work(situation: Situation) -> bool:
    """Whether the data or the model is the user's; built-in ones do not need some fields."""
    return situation.data.is_own or isinstance(situation.model, UserModel)


def _has_one_class(situation: Situation) -> bool:
    """Whether an example of the user's data may have one class; built-in data is balanced."""
    of_classes = situation.data.classes != 0 and situation.task in ("auto", "classification", "custom")
    return situation.data.is_own and of_classes


def _may_have_classes(situation: Situation) -> bool:
    return situation.task not in ("regression", "reconstruction")


def _may_have_images(situation: Situation) -> bool:
    data = situation.data
    return (data.kind == "images" if data.shape is None else len(data.shape) == 3) or data.needs_engine


def _is_saved_model(situation: Situation) -> bool:
    return isinstance(situation.model, UserModel) and situation.model.kind == "saved"


def _on(*kinds: str) -> Condition:
    return lambda situation: situation.kind in kinds


def _splits_cpu(situation: Situation) -> bool:
    # With a single GPU, logical CPU devices are the only way to test a multi-device strategy.
    instead_of_gpu = situation.kind == "gpu" and not situation.plan.devices and situation.gpus == 1
    return situation.kind in ("cpu", "") or instead_of_gpu


def _allows(situation: Situation) -> bool:
    """Whether something is refused unless it is forced."""
    plan = situation.plan
    slow = plan.precision == "mixed_float16" and situation.kind in ("cpu", "")
    return slow or (plan.xla == "on" and situation.kind == "gpu")


def _has_several_devices(situation: Situation) -> bool:
    return situation.strategy.maximum_devices != 1


def _can_place_state(situation: Situation) -> bool:
    """Whether the optimizer's state can be where the plan says: logical CPUs stand in for GPUs."""
    name = situation.strategy.name
    if situation.plan.optimizer_state == "sharded":
        return name == "mirrored"
    may_be = name in ("default", "one-device", "pipeline", "mirrored")
    return may_be and (situation.kind in ("gpu", "") or situation.plan.virtual_cpus > 1)


def _why_not_place_state(situation: Situation) -> Words:
    if situation.plan.optimizer_state == "sharded":
        return ("; sharded needs ", FieldValue("strategy", "mirrored"), ", whose replicas divide it")
    is_of_host = situation.kind == "cpu" and not situation.strategy.processes
    return ("; CPUs train, whose memory is the host's: leave it out",) if is_of_host else _strategy_is(situation)


COLUMNS = Purpose("files with columns or named arrays", _has_columns)
TABLES = Purpose("tables", lambda s: s.source.is_table)
ROWS_IN_ORDER = Purpose("tables and time series", _may_be_ordered)
SEVERAL_SERIES = Purpose("time series", _may_be_ordered, is_shown=_usually_has_several_series)
WINDOWS = Purpose(
    "time series, arrays, audio and texts", lambda s: s.source.takes_window, is_shown=_usually_has_windows
)
FORECASTS = Purpose("windows of time series", _is_series, _rows_are, is_shown=lambda s: _is_series(s) or _is_ordered(s))
LANGUAGE_MODELS = Purpose("texts for language models", lambda s: s.source.has_tokens)
IMAGE_FOLDERS = Purpose("a folder of images", lambda s: s.source.resizes_images)
SPLIT_OFF_VALIDATION = Purpose("data without validation examples", _splits_off_validation, _why_not_split_off)
UNSPLIT_DATA = rarely("your own data without splits", _may_split("validation"))
UNTESTED_DATA = Purpose("data that is read", lambda s: not s.source.is_made_up, _made_up, is_shown=_may_split("test"))
OTHER_VALIDATION = Purpose(
    "your own data, but for TensorFlow Datasets",
    _takes_other_validation,
    is_shown=lambda s: _may_split("validation")(s) and s.source.takes_validation_data,
)
VALIDATION_STREAMS = Purpose("a function that returns a stream", lambda s: bool(s.data.function))
OWN_DATA = rarely("your own data", _is_own)
OWN_WORK = rarely("your own data or model", _is_own_work)
WEIGHTED_CLASSES = rarely("your own data with classes", _has_one_class)
IMAGES = rarely("images", _may_have_images)
CLASSES = Purpose(
    "classes",
    lambda s: _may_have_classes(s) or not isinstance(s.model, ModelEntry),  # a model of the user may have any loss
    _task_is,
    is_shown=_may_have_classes,
)
SAVED_MODELS = Purpose("a model in a FILE.keras", _is_saved_model, _model_is)
NO_TPU = Purpose("CPUs and GPUs: a TPU is used as a whole", lambda s: s.strategy.kind != "tpu", _strategy_is)
LOGICAL_CPUS = Purpose("CPUs", _splits_cpu, _device_is)
CPUS = Purpose("CPUs", _on("cpu", ""), _device_is)
LAYER_KERNELS = Purpose("CPUs and GPUs", _on("cpu", "gpu", ""), _device_is, is_refused=False)
GPUS = Purpose("GPUs", _on("gpu", ""), _device_is, is_shown=_on("gpu"))
REDUCED_FLOAT32 = Purpose(
    "GPUs and TPUs", _on("gpu", "tpu", ""), _device_is, is_shown=_on("gpu", "tpu"), is_refused=False
)
FORCED = Purpose("mixed_float16 on a CPU, and XLA on a GPU", _allows, is_refused=False)
REDUCTIONS = Purpose("strategies with several devices", lambda s: len(s.strategy.reductions) > 1, _strategy_is)
SEVERAL_DEVICES = Purpose("strategies with several devices", _has_several_devices, is_refused=False)
PIPELINES = Purpose("the strategy pipeline", lambda s: s.strategy.staged, _strategy_is)
STATE_ELSEWHERE = Purpose(
    "one GPU, mirrored, or a pipeline",
    _can_place_state,
    _why_not_place_state,
    is_shown=lambda s: s.strategy.name == "mirrored" or (s.kind == "gpu" and _can_place_state(s)),
)
LOCAL_WORKERS = Purpose("multi-worker and parameter-server", lambda s: s.strategy.processes, _strategy_is)
TPUS = Purpose("the strategy tpu", lambda s: s.strategy.kind == "tpu", _strategy_is)
