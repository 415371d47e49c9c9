"""Events of a run's setup: engine, workers, devices, model, and measurements of a step."""

from dataclasses import dataclass

from accel_engine.events.event import Event
from accel_engine.json_values import Count, JsonValue, Number, Text


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """An engine started or continued the run.

    Attributes:
        run: The run's id.
        name: The run's name.
        plan: The plan's fields.
        first_step: The first step: 0, or the step of the checkpoint that it continues from.
        pid: The engine's process id.
        host: The engine's host name.
        versions: Package versions, for bug reports.
        worker: The worker that writes this run, e.g. ``worker 1``; empty for the chief, and without a cluster.
    """

    run: Text
    name: Text
    plan: dict[str, JsonValue]
    first_step: Count
    pid: Count
    host: Text
    versions: dict[str, Text]
    worker: Text = ""


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker of a cluster.

    Attributes:
        name: E.g. ``worker 1``.
        address: Its address.
        host: Its host name.
        run: Id of its run, or its path within the chief's run.
    """

    name: Text
    address: Text = ""
    host: Text = ""
    run: Text = ""


@dataclass(frozen=True, slots=True)
class TensorFlowDevice:
    """A device that trains.

    Attributes:
        name: TensorFlow's name, e.g. ``GPU:0``.
        kind: ``cpu``, ``gpu`` or ``tpu``.
        description: TensorFlow's description.
        device: Id of the matching device in :mod:`accel_engine.devices`; empty if there is none.
    """

    name: Text
    kind: Text = ""
    description: Text = ""
    device: Text = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersMet(Event):
    """All workers of a cluster are connected; written to each worker's run.

    Attributes:
        workers: The workers, the chief first.
        reduction: How gradients are all-reduced over them: ``ring`` or ``nccl``.
    """

    workers: tuple[Worker, ...]
    reduction: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicesFound(Event):
    """The TensorFlow devices that train.

    Attributes:
        devices: The devices, in TensorFlow's order.
        strategy: Class name of the ``tf.distribute`` strategy.
        address: Address of a remote TPU.
    """

    devices: tuple[TensorFlowDevice, ...]
    strategy: Text
    address: Text = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelBuilt(Event):
    """The model was built, with data and strategy.

    For a script's run, ``None`` and empty texts are unknown values; the event is repeated when more is known.

    Attributes:
        parameters: Number of weights, trainable or not.
        trainable: Number of trainable weights.
        layers: Number of layers.
        input_shape: Shape of one example, without the batch; ``None`` for several inputs.
        classes: Number of classes; 0 if there are none.
        examples: Number of training examples.
        validation_examples: Number of validation examples.
        epochs: Epochs to train; 0 for a loop of a script that does not tell, whose steps are then all those of
            ``steps_per_epoch``.
        steps_per_epoch: Optimizer updates per epoch; 0 if the first epoch has to end before it is known.
        global_batch: Examples per step over all replicas.
        per_replica_batch: Examples per step on each replica.
        dropped_examples: Training examples dropped per epoch with the last partial batch.
        replicas: Number of replicas.
        optimizer: Class name of the optimizer.
        loss: Name of the loss.
        series: Names of the per-step series; the first is ``loss``.
        precision: Keras' name of the dtype policy.
        xla: Whether XLA compiles the step.
        feed: ``resident`` if the dataset is cached on the devices, ``streamed`` if it is streamed to them,
            ``own`` if the user's script feeds it.
        scaling: Scaling of the raw examples, e.g. ``pixels scaled by 1/255``; empty if unknown.
        task: What is learned, one of :data:`accel_engine.data.data_options.TASKS`; empty if unknown.
        monitor: The metric that counts, such as ``validation_accuracy``; empty if unknown.
        inputs: The inputs of an example, as text.
        outputs: The outputs of the model, as text.
        activation: Keras' name of the activation of the model's single output, such as ``softmax`` or ``linear``; empty
            if unknown.
        from_logits: Whether the loss takes logits; ``None`` if unknown, or if it is no crossentropy.
    """

    parameters: Count | None
    trainable: Count | None
    layers: Count | None
    input_shape: tuple[Count | None, ...] | None
    classes: Count | None
    examples: Count | None
    validation_examples: Count | None
    epochs: Count
    steps_per_epoch: Count | None
    global_batch: Count | None
    per_replica_batch: Count | None
    dropped_examples: Count
    replicas: Count
    optimizer: Text
    loss: Text
    series: tuple[Text, ...]
    precision: Text
    xla: bool | None
    feed: Text
    scaling: Text = ""
    task: Text = ""
    monitor: Text = ""
    inputs: Text = ""
    outputs: Text = ""
    activation: Text = ""
    from_logits: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class XlaTried(Event):
    """Autotuning measured the steps with and without XLA, and chose the faster mode; repeated when it measures again.

    Attributes:
        step: Steps taken in the run before it.
        xla: Whether XLA compiles the steps from now on.
        plain: Steps per second without XLA.
        compiled: Steps per second with XLA; 0 if it cannot compile the steps.
        remembered: Whether the result is from an earlier run.
        settled: Whether repeated measurements agree; if not, autotuning measures again later.
        reason: Why XLA cannot compile the steps; empty if it can.
    """

    step: Count
    xla: bool
    plain: Number
    compiled: Number
    remembered: bool
    settled: bool = True
    reason: Text = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatchesTried(Event):
    """Autotuning measured the steps with and without micro-batches, and chose the faster mode; may be repeated.

    Attributes:
        step: Steps taken in the run before it.
        micro_batches: Micro-batches per step from now on; 1 for none.
        tried: Micro-batches per step of the trial.
        whole: Steps per second without micro-batches.
        split: Steps per second with micro-batches; 0 if they are not possible.
        remembered: Whether the result is from an earlier run.
        settled: Whether repeated measurements agree; if not, autotuning measures again later.
    """

    step: Count
    micro_batches: Count
    tried: Count
    whole: Number
    split: Number
    remembered: bool
    settled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadsChosen(Event):
    """The engine trains on a CPU with another number of threads per operation than TensorFlow's own.

    Attributes:
        threads: The number.
        default: TensorFlow's own: the number of processors.
        source: ``plan``, ``environment`` (``TF_NUM_INTRAOP_THREADS``) or ``earlier runs``, which were faster with it.
        rate: Steps per second of an earlier run with ``threads``; 0 for another source.
        default_rate: The same with ``default``.
    """

    threads: Count
    default: Count
    source: Text
    rate: Number = 0.0
    default_rate: Number = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkCounted(Event):
    """The FLOPs of a step, or the devices' peak, became known; repeated when more is known.

    Attributes:
        flops: Floating-point operations of a step's matrix products and convolutions, gradients
            included, on all replicas; ``None`` if they cannot be counted.
        peak: Peak FLOP/s of all devices together; ``None`` if unknown.
        source: Source of the peak, and its arithmetic.
        reason: Why FLOPs or peak are unknown.
    """

    flops: Number | None
    peak: Number | None
    source: Text = ""
    reason: Text = ""
