"""What a run rests on: who trains, on what, which model, and what a step of it costs."""

from dataclasses import dataclass
from typing import Any

from accel_engine.events.event import Event


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

    Of what a script of the user's trains, ``None`` and an empty text are what is not known; told again when more is.

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
        scaling: What is done to raw examples before the model takes them, as in ``pixels scaled by 1/255``; empty
            where that is not known.
    """

    parameters: int | None
    trainable: int | None
    layers: int | None
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
    xla: bool | None
    feed: str
    scaling: str = ""


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
class MicroBatchesTried(Event):
    """It was measured whether taking a batch in parts is faster, and the faster way is gone on with.

    Attributes:
        step: Steps taken in the run before it.
        micro_batches: Parts that a batch is taken in from now on; 1 for the whole of it at a time.
        tried: Parts that it was tried in.
        whole: Steps a second with the whole batch at a time.
        split: Steps a second in parts; 0 when they cannot be taken so.
        remembered: Whether an earlier run measured it.
    """

    step: int
    micro_batches: int
    tried: int
    whole: float
    split: float
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
