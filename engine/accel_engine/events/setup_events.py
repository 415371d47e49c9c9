"""Events of a run's setup: engine, workers, devices, model, and measurements of a step."""

from dataclasses import dataclass

from accel_engine.events.event import Event
from accel_engine.json_values import Count, JsonValue, Number, Text


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """An engine started or continued the run."""

    run: Text
    """The run's id."""
    name: Text
    plan: dict[str, JsonValue]
    """The plan's fields."""
    first_step: Count
    """The first step: 0, or the step of the checkpoint that it continues from."""
    pid: Count
    """The engine's process id."""
    host: Text
    """The engine's host name."""
    versions: dict[str, Text]
    """Package versions, for bug reports."""
    worker: Text = ""
    """The worker that writes this run, e.g. ``worker 1``; empty for the chief, and without a cluster."""


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker of a cluster."""

    name: Text
    """E.g. ``worker 1``."""
    address: Text = ""
    host: Text = ""
    """Its host name."""
    run: Text = ""
    """Id of its run, or its path within the chief's run."""


@dataclass(frozen=True, slots=True)
class TensorFlowDevice:
    """A device that trains."""

    name: Text
    """TensorFlow's name, e.g. ``GPU:0``."""
    kind: Text = ""
    """``cpu``, ``gpu`` or ``tpu``."""
    description: Text = ""
    """TensorFlow's description."""
    device: Text = ""
    """Id of the matching device in :mod:`accel_engine.devices`; empty if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersMet(Event):
    """All workers of a cluster are connected; written to each worker's run."""

    workers: tuple[Worker, ...]
    """The workers, the chief first."""
    reduction: Text
    """How gradients are all-reduced over them: ``ring`` or ``nccl``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicesFound(Event):
    """The TensorFlow devices that train."""

    devices: tuple[TensorFlowDevice, ...]
    """The devices, in TensorFlow's order."""
    strategy: Text
    """Class name of the ``tf.distribute`` strategy."""
    address: Text = ""
    """Address of a remote TPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelBuilt(Event):
    """The model was built, with data and strategy.

    For a script's run, ``None`` and empty texts are unknown values; the event is repeated when more is known.
    """

    parameters: Count | None
    """Number of weights, trainable or not."""
    trainable: Count | None
    """Number of trainable weights."""
    layers: Count | None
    input_shape: tuple[Count | None, ...] | None
    """Shape of one example, without the batch; ``None`` for several inputs."""
    classes: Count | None
    """Number of classes; 0 if there are none."""
    examples: Count | None
    """Number of training examples."""
    validation_examples: Count | None
    """Number of validation examples."""
    epochs: Count
    """Epochs to train; 0 for a loop of a script that does not tell, whose steps are then all in
    ``steps_per_epoch``."""
    steps_per_epoch: Count | None
    """Optimizer updates per epoch; 0 if the first epoch has to end before it is known."""
    global_batch: Count | None
    """Examples per step over all replicas."""
    per_replica_batch: Count | None
    """Examples per step on each replica."""
    dropped_examples: Count
    """Training examples dropped per epoch with the last partial batch."""
    replicas: Count
    optimizer: Text
    """Class name of the optimizer."""
    loss: Text
    """Name of the loss."""
    series: tuple[Text, ...]
    """Names of the per-step series; the first is ``loss``."""
    precision: Text
    """Keras' name of the dtype policy."""
    xla: bool | None
    """Whether XLA compiles the step."""
    feed: Text
    """``resident`` if the dataset is cached on the devices, ``streamed`` if it is streamed to them, ``own`` if the
    user's script feeds it."""
    scaling: Text = ""
    """Scaling of the raw examples, e.g. ``pixels scaled by 1/255``; empty if unknown."""
    task: Text = ""
    """What is learned, one of :data:`accel_engine.data.data_options.TASKS`; empty if unknown."""
    monitor: Text = ""
    """The metric that counts, such as ``validation_accuracy``; empty if unknown."""
    inputs: Text = ""
    """The inputs of an example, as text."""
    outputs: Text = ""
    """The outputs of the model, as text."""
    activation: Text = ""
    """Keras' name of the activation of the model's single output, such as ``softmax`` or ``linear``; empty if
    unknown."""
    from_logits: bool | None = None
    """Whether the loss takes logits; ``None`` if unknown, or if it is not a crossentropy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class XlaTried(Event):
    """Autotuning measured the steps with and without XLA, and chose the faster mode. A run may have several."""

    step: Count
    """Steps taken in the run before it."""
    xla: bool
    """Whether XLA compiles the steps from now on."""
    plain: Number
    """Steps per second without XLA."""
    compiled: Number
    """Steps per second with XLA; 0 if it cannot compile the steps."""
    remembered: bool
    """Whether the result is from an earlier run."""
    settled: bool = True
    """Whether repeated measurements agree; if not, autotuning measures again later."""
    reason: Text = ""
    """Why XLA cannot compile the steps; empty if it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatchesTried(Event):
    """Autotuning measured the steps with and without micro-batches, and chose the faster mode; may be repeated."""

    step: Count
    """Steps taken in the run before it."""
    micro_batches: Count
    """Micro-batches per step from now on; 1 for none."""
    tried: Count
    """Micro-batches per step of the trial."""
    whole: Number
    """Steps per second without micro-batches."""
    split: Number
    """Steps per second with micro-batches; 0 if they are not possible."""
    remembered: bool
    """Whether the result is from an earlier run."""
    settled: bool = True
    """Whether repeated measurements agree; if not, autotuning measures again later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadsChosen(Event):
    """The engine trains on a CPU with another number of threads per operation than TensorFlow's own."""

    threads: Count
    """Number of threads."""
    default: Count
    """TensorFlow's own number: the number of processors."""
    source: Text
    """``plan``, ``environment`` (``TF_NUM_INTRAOP_THREADS``) or ``earlier runs``, which were faster with it."""
    rate: Number = 0.0
    """Steps per second of an earlier run with ``threads``; 0 for another source."""
    default_rate: Number = 0.0
    """Steps per second of an earlier run with ``default``; 0 for another source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkCounted(Event):
    """The FLOPs of a step, or the devices' peak, became known; repeated when more is known."""

    flops: Number | None
    """Floating-point operations of a step's matrix products and convolutions, gradients included, on all replicas;
    ``None`` if they cannot be counted."""
    peak: Number | None
    """Peak FLOP/s of all devices together; ``None`` if unknown."""
    source: Text = ""
    """Source of the peak, and its arithmetic."""
    reason: Text = ""
    """Why FLOPs or peak are unknown."""
