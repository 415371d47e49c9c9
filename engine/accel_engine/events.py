"""What a run says: past-tense facts with plain numbers, the only thing that engine and screen share.

Every event is frozen and holds no tensor. :func:`to_json` and :func:`from_json` give its stored form;
:func:`to_wire` gives the form that ``accel-tui train --json`` prints.
"""

import json
import math
import re
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any, Self


class Phase(StrEnum):
    """What an engine is busy with."""

    STARTING = "starting"
    IMPORTING = "importing"
    BUILDING = "building"
    TRACING = "tracing"
    TRAINING = "training"
    PAUSED = "paused"
    VALIDATING = "validating"
    CHECKPOINTING = "checkpointing"


class Outcome(StrEnum):
    """How a run ended. A run whose engine died without a word has none: it is lost."""

    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened in a run.

    Attributes:
        time: Seconds since the Unix epoch.
    """

    time: float

    @classmethod
    def kind(cls) -> str:
        """The event's name in files and on the wire: ``EpochEnded`` is ``epoch_ended``."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()

    @classmethod
    def parse(cls, values: dict[str, Any]) -> Self:
        """Build the event from its stored fields."""
        return cls(**{field.name: values[field.name] for field in fields(cls) if field.name in values})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """An engine took up the run; a resumed run has one for every time that it was taken up.

    Attributes:
        run: The run's id.
        name: What the user called it.
        plan: The plan's fields.
        first_step: The step that training goes on from: 0, or that of the checkpoint it resumes.
        pid: The engine's process id.
        host: The machine that it runs on.
        versions: Versions that matter for a bug report, by package.
        worker: Which of those that train together writes this run, as in ``worker 1``; empty for the chief,
            and for who trains alone.
    """

    run: str
    name: str
    plan: dict[str, Any]
    first_step: int
    pid: int
    host: str
    versions: dict[str, str]
    worker: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseChanged(Event):
    """The engine turned to something else.

    Attributes:
        detail: More about it in a few words, or nothing.
    """

    phase: Phase
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersMet(Event):
    """All workers of a cluster have come together; each says so in its own run.

    Attributes:
        workers: One mapping each, the chief first: ``name``, ``address``, ``host`` (the machine), and ``run``,
            the id of what it writes there, or its path within the chief's run.
        reduction: How gradients are summed over them: ``ring`` or ``nccl``.
    """

    workers: tuple[dict[str, str], ...]
    reduction: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicesFound(Event):
    """TensorFlow's own view of the devices it trains on.

    Attributes:
        devices: One mapping a device: ``name`` (TensorFlow's, ``GPU:0``), ``kind`` (``cpu``, ``gpu``,
            ``tpu``), ``description``, and ``device``, the id in :mod:`accel_engine.devices` of the
            hardware that it was matched to, empty where there is no match.
        strategy: The class of ``tf.distribute`` in use.
        address: Where the devices are, of a TPU that is reached over the network.
    """

    devices: tuple[dict[str, str], ...]
    strategy: str
    address: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelBuilt(Event):
    """Model, data and strategy stand; what the plan came to.

    Of what a script of the user's trains, ``None`` is what is not known; told again when more is.

    Attributes:
        parameters: Number of weights, trainable or not.
        trainable: Number of trainable weights.
        layers: Number of layers.
        input_shape: Shape of one example, without the batch.
        classes: Number of classes.
        examples: Number of training examples.
        validation_examples: Number of validation examples.
        epochs: Epochs to train.
        steps_per_epoch: Optimizer updates in an epoch.
        global_batch: Examples a step over all replicas.
        per_replica_batch: Examples a step on each replica.
        dropped_examples: Training examples that each epoch leaves out, so that batches are whole.
        replicas: Number of replicas.
        optimizer: Its class.
        loss: Name of the loss.
        series: Names of what is recorded at every step; the first is ``loss``.
        precision: Keras' name of the dtype policy.
        xla: Whether the step is compiled by XLA.
        feed: ``resident`` when the data lives on the devices, ``streamed`` when it is fed,
            ``own`` when the user's script feeds it.
    """

    parameters: int
    trainable: int
    layers: int
    input_shape: tuple[int, ...] | None
    classes: int | None
    examples: int | None
    validation_examples: int | None
    epochs: int
    steps_per_epoch: int | None
    global_batch: int | None
    per_replica_batch: int | None
    dropped_examples: int
    replicas: int
    optimizer: str
    loss: str
    series: tuple[str, ...]
    precision: str
    xla: bool
    feed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochEnded(Event):
    """An epoch's last step was taken.

    Attributes:
        epoch: Counted from 1.
        step: Steps taken so far in the whole run.
        metrics: Mean over the epoch's steps of every series, among them ``loss``.
        seconds: Time that its training took, without validation and checkpoint.
    """

    epoch: int
    step: int
    metrics: dict[str, float]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Validated(Event):
    """The model was tried on the validation data.

    Attributes:
        metrics: Means over the examples, ``loss`` among them.
    """

    epoch: int
    step: int
    metrics: dict[str, float]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSaved(Event):
    """Everything that is needed to go on from here was written.

    Attributes:
        path: Relative to the run's directory.
    """

    epoch: int
    step: int
    path: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRateChanged(Event):
    """The learning rate is another from this step on.

    Attributes:
        step: The first step taken with it, counted from 0.
    """

    step: int
    learning_rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class XlaTried(Event):
    """It was measured whether XLA makes the step faster, and the faster way is gone on with.

    Attributes:
        step: Steps taken in the run before it.
        xla: Whether XLA compiles the step from now on.
        plain: Steps a second without XLA.
        compiled: Steps a second with it; 0 when it cannot compile the step.
        remembered: Whether an earlier run measured it.
    """

    step: int
    xla: bool
    plain: float
    compiled: float
    remembered: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkCounted(Event):
    """It is known what a step computes, or what the devices could; told again when more is known.

    Attributes:
        flops: Floating-point operations of the matrix products and convolutions of a step, gradients
            included, on all replicas; ``None`` where they cannot be counted.
        peak: What all devices together could do of them in a second; ``None`` where that is not known.
        source: Where the peak is from, and for which arithmetic.
        reason: Why there is no count, or no peak.
    """

    flops: float | None
    peak: float | None
    source: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandAnswered(Event):
    """A command was obeyed, or not.

    Attributes:
        command: Its name.
        who: Who asked.
        obeyed: Whether it was done.
        answer: What was done, or why not.
        step: Steps taken when it was answered.
    """

    command: str
    who: str
    obeyed: bool
    answer: str
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned(Event):
    """Something the user should know, that does not end the run."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded(Event):
    """The engine is done; the last event of a run until it is resumed.

    Attributes:
        steps: Steps taken in the whole run.
        epochs: Epochs completed in the whole run.
        seconds: Time since this engine took the run up.
        steps_per_second: While training, after the first chunk; 0 when nothing was measured.
        metrics: The last epoch's means; validation's are prefixed with ``validation_``.
        reason: Why it stopped or failed.
        hint: What could be done about it.
        flops_per_second: Operations a second at that rate, as :class:`WorkCounted` has them; ``None`` where unknown.
        mfu: Their share of the devices' peak; ``None`` where unknown.
    """

    outcome: Outcome
    steps: int
    epochs: int
    seconds: float
    steps_per_second: float
    metrics: dict[str, float]
    reason: str = ""
    hint: str = ""
    flops_per_second: float | None = None
    mfu: float | None = None


KINDS: dict[str, type[Event]] = {
    kind.kind(): kind
    for kind in (
        RunStarted,
        PhaseChanged,
        WorkersMet,
        DevicesFound,
        ModelBuilt,
        EpochEnded,
        Validated,
        CheckpointSaved,
        LearningRateChanged,
        XlaTried,
        WorkCounted,
        CommandAnswered,
        Warned,
        RunEnded,
    )
}

_ENUMS: dict[str, type[StrEnum]] = {"phase": Phase, "outcome": Outcome}


def to_json(event: Event) -> str:
    """Give an event's stored form: its fields but for the time, which has a column of its own."""
    values = asdict(event)
    del values["time"]
    return json.dumps(_finite(values), separators=(",", ":"))


def from_json(kind: str, time: float, body: str) -> Event:
    """Read an event back from its stored form.

    Raises:
        KeyError: No event is called ``kind``.
    """
    values = json.loads(body)
    for name, value in values.items():
        if isinstance(value, list):
            values[name] = tuple(value)
        elif name in _ENUMS:
            values[name] = _ENUMS[name](value)
        elif name == "metrics":
            values[name] = {key: math.nan if number is None else number for key, number in value.items()}
    return KINDS[kind].parse({**values, "time": time})


def to_wire(event: Event) -> dict[str, Any]:
    """Give an event as the JSON object that scripts read.

    ``metrics`` stand beside the other fields, but for one that would hide such a field.
    """
    values: dict[str, Any] = {"event": event.kind(), **_finite(asdict(event))}
    metrics = values.pop("metrics", {})
    return values | {name: value for name, value in metrics.items() if name not in values}


def _finite(value: Any) -> Any:
    """Replace what JSON cannot hold (NaN and the infinities) by null."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {key: _finite(item) for key, item in value.items()}
        case list() | tuple():
            return [_finite(item) for item in value]
    return value
