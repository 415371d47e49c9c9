"""Assembles what a plan's training needs: strategy, dataset, compiled model, optimizer and feed."""

import pkgutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import keras
import tensorflow as tf

from accel_engine import data, models
from accel_engine.data.changes import remarks
from accel_engine.data.data_options import Progress, no_progress
from accel_engine.data.dataset import Dataset, Examples, Split
from accel_engine.data.pixel_scaling import Scaling
from accel_engine.data.structure import Batch, Structure
from accel_engine.errors import DataError, PlanError
from accel_engine.keras_support.model_structure import fixed_batch
from accel_engine.keras_support.optimizers import has_constant_rate, optimizer_of_steps, read_rate
from accel_engine.models import AutoModel
from accel_engine.models.loaded_data import describe_data
from accel_engine.plan import Plan
from accel_engine.plan.fit_checks import why_not_compilable
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.plan.step_counts import StepCounts, count_steps, count_stream_steps, tpu_advice
from accel_engine.private_names.keras_names import all_layers, averages_of, unseeded_state
from accel_engine.run.diagnostics import Diagnostics
from accel_engine.run.store.series_names import LEARNING_RATE, SeriesNames, rounded_rate
from accel_engine.strategies.cluster_spec import ClusterSpec
from accel_engine.training.core import device_visibility
from accel_engine.training.core.changed_data import changed_data_notes
from accel_engine.training.core.compiled_model import compile_model
from accel_engine.training.core.feed import Feed, choose_feed
from accel_engine.training.core.float16_range import float16_notes
from accel_engine.training.core.gradient_norms import GradientNorms
from accel_engine.training.core.metric_states import MAX_EPOCH_STATE, MAX_STATE, MetricStates
from accel_engine.training.core.pipeline.stages import ModelStages
from accel_engine.training.core.recipe.augmentation import Augmentation, choose_augmentation
from accel_engine.training.core.recipe.freezing import Freezing
from accel_engine.training.core.rematerialization.choice import choose_parts
from accel_engine.training.core.rematerialization.parts import ModelParts
from accel_engine.training.core.run_scaling import scaler
from accel_engine.training.core.stream_feed import StreamFeed
from accel_engine.training.core.task import Task
from accel_engine.training.core.uneven_batches import batch_notes
from accel_engine.training.core.worker_data import WorkerDataFeed
from accel_engine.training.optimizer_state import OptimizerState

_CONVOLUTIONS = (keras.layers.Conv1D, keras.layers.Conv2D, keras.layers.Conv3D)

STEP_SERIES = ("loss", "accuracy", "gradient_norm", LEARNING_RATE)
"""The series recorded at each step, unless the model has a custom ``train_step``."""


@dataclass(frozen=True, slots=True)
class Assembly:
    """Everything that training a plan needs."""

    resolved: ResolvedPlan
    """The plan, with its steps."""
    strategy: tf.distribute.Strategy
    """The ``tf.distribute`` strategy."""
    dataset: Dataset
    """The training and validation examples."""
    model: keras.Model
    """Built and compiled, with its optimizer's variables."""
    feed: Feed
    """How training examples reach the replicas."""
    task: Task
    """What the model learns: how targets reach its loss."""
    outputs: Structure
    """The specs of the model's outputs; ``None`` if it cannot be called."""
    metrics: tuple[keras.Metric, ...]
    """Metrics besides the model's own."""
    has_custom_train_step: bool
    """Whether the model has a custom ``train_step``."""
    scaling: Scaling
    """How raw examples are scaled before the model."""
    augmentation: Augmentation | None
    """Changes training batches at random; ``None`` if the plan has no augmentation."""
    freezing: Freezing
    """The frozen layers of the model."""
    remat: ModelParts
    """The parts of the model that are computed again for their gradients; none without rematerialization."""
    stages: ModelStages | None
    """The stages of the model, on their devices; ``None`` without a pipeline."""
    optimizer_state: OptimizerState | None
    """The state of the optimizer; ``None`` if it is beside the weights."""
    devices: tuple[str, ...]
    """TensorFlow's names of the logical devices that run steps; for a coordinator, of one worker."""
    device_memory: int | None
    """Bytes that the plan may take of each; ``None`` for host memory, 0 if it is unknown."""
    names: SeriesNames
    """Names of the recorded series."""
    information: tuple[str, ...]
    """Notes for the user."""
    notes: tuple[str, ...]
    """Warnings for the user."""
    unseeded: tuple[keras.Variable, ...]
    """The state of Keras' global random generator, for layers without a seed; empty where inaccessible."""
    model_modified: float | None
    """When the file of the user's model had been modified as it was read, in seconds since the Unix epoch; ``None``
    for other models."""

    @property
    def plan(self) -> Plan:
        """The run's plan, from :attr:`resolved`."""
        return self.resolved.plan

    @property
    def step_counts(self) -> StepCounts:
        """Batch sizes and steps per epoch."""
        assert self.resolved.step_counts is not None  # noqa: S101 (the steps are counted before this is made)
        return self.resolved.step_counts

    @property
    def cluster(self) -> ClusterSpec | None:
        """The processes that train together; ``None`` for a single process."""
        return self.resolved.cluster

    @property
    def averages(self) -> list[tuple[keras.Variable, keras.Variable]]:
        """The weights with their moving averages, which validation and the saved model use instead; empty without."""
        return averages_of(self.model) if self.optimizer is not None else []

    def averaged_weights(self) -> list[tuple[keras.Variable, tf.Tensor]]:
        """The weights of the model with the averages to validate instead, in a graph; empty without averages."""
        return [(variable, tf.convert_to_tensor(average.value)) for variable, average in self.averages]

    def prepare(self, raw: Batch) -> Batch:
        """Prepare raw examples for the model and its loss; in the graph of a step."""
        inputs = self.scaled(raw.inputs)
        return Batch(inputs, self.task.encode(raw.targets, inputs), raw.weights)

    def prepare_training(self, raw: Batch) -> Batch:
        """The same for a training step, with augmented examples; outside of XLA, which cannot compile all of them."""
        return self.augmentation(self.prepare(raw)) if self.augmentation else self.prepare(raw)

    def scaled(self, inputs: Structure) -> Structure:
        """Scale raw inputs for the model; in a graph."""
        return scaler(self.scale, self.dataset)(inputs)

    @property
    def scale(self) -> float:
        """The factor that raw examples are multiplied by."""
        return self.scaling.factor

    @property
    def single_process(self) -> bool:
        """Whether no other process takes part in training."""
        return self.cluster is None

    @property
    def coordinated(self) -> bool:
        """Whether this process is a coordinator that schedules steps on workers."""
        return self.resolved.coordinated

    @property
    def simultaneous_steps(self) -> int:
        """Steps that run at the same time: one per worker of a coordinator, or 1 without a coordinator."""
        return len(self.cluster.workers) if self.cluster is not None and self.coordinated else 1

    @property
    def chief(self) -> bool:
        """Whether this process saves the model and leads the others."""
        return self.cluster is None or self.cluster.chief

    @property
    def replicas(self) -> int:
        """Number of replicas that share a step."""
        return self.step_counts.replicas

    @property
    def on_cpu(self) -> bool:
        """Whether training runs on CPUs only."""
        return self.devices[0].startswith("CPU")

    @property
    def uses_layer_kernels(self) -> bool:
        """Whether the kernels of this program may replace Keras'; not in a custom ``train_step``."""
        return self.plan.layer_kernels == "auto" and not self.has_custom_train_step

    @property
    def on_gpu(self) -> bool:
        """Whether GPUs train: some programs are compiled in another form for them."""
        return not self.on_cpu and not self.on_tpu

    @property
    def on_tpu(self) -> bool:
        """Whether training runs on a TPU, where XLA compiles every step."""
        return self.devices[0].startswith("TPU")

    @property
    def optimizer(self) -> keras.Optimizer | None:
        """The optimizer; ``None`` where a custom ``train_step`` has several."""
        return optimizer_of_steps(self.model, custom_step=self.has_custom_train_step)

    @property
    def has_constant_rate(self) -> bool:
        """Whether the learning rate is a variable, which can be set, rather than a schedule."""
        return self.optimizer is not None and has_constant_rate(self.optimizer)

    @property
    def learning_rate(self) -> float | None:
        """The learning rate of the next step; ``None`` where it is unknown."""
        return None if self.optimizer is None else rounded_rate(float(read_rate(self.optimizer)))


def build_strategy(devices: tuple[str, ...], resolved: ResolvedPlan) -> tf.distribute.Strategy:
    """Build the strategy of a plan.

    Args:
        devices: TensorFlow's names of the logical devices to train on.
        resolved: The plan.
    """
    return pkgutil.resolve_name(resolved.strategy.builder)(devices, resolved)


def assemble(
    resolved: ResolvedPlan,
    devices: tuple[str, ...],
    device_memory: int | None,
    trained: Diagnostics | None = None,
    progress: Progress = no_progress,
    strategy: tf.distribute.Strategy | None = None,
) -> Assembly:
    """Load the data, build the model under its strategy, and check that they fit together.

    Args:
        resolved: The plan.
        devices: TensorFlow's names of the logical devices to train on.
        device_memory: Bytes that the plan may take of each; ``None`` for host memory, 0 if it is unknown.
        trained: The diagnostics of the run that continues from a checkpoint.
        progress: Reports the number of examples read.
        strategy: The plan's strategy, if it has been built.

    Raises:
        PlanError: A field of the plan does not fit the data, the model or the devices.
        DataError: The data cannot be read.
        ModelError: The model cannot be built, or does not fit the data.
    """
    plan = resolved.plan
    keras.utils.set_random_seed(plan.seed)
    keras.config.set_dtype_policy(plan.policy)
    tf.config.experimental.enable_tensor_float_32_execution(plan.tf32 == "on")
    if plan.deterministic == "on":
        tf.config.experimental.enable_op_determinism()
    entry = resolved.strategy
    strategy = strategy or build_strategy(devices, resolved)
    dataset = data.load(plan.data, plan.data_options, progress)
    if why := why_not_compilable(plan, dataset.spec):
        raise PlanError("xla", plan.xla, why)
    notes = changed_data_notes(dataset, plan, trained)
    if isinstance(models.find(plan.model), AutoModel):
        resolved = resolved.with_chosen_model(describe_data(dataset, plan.task))
    train, replicas = dataset.train, strategy.num_replicas_in_sync
    resolved = resolved.with_step_counts(
        count_steps(plan, len(train), replicas)
        if isinstance(train, Split)
        else count_stream_steps(plan, train.batches, train.batch_size, replicas)
    )
    step_counts = resolved.step_counts
    assert step_counts is not None  # noqa: S101 (they were just counted)
    notes += batch_notes(resolved, train)
    if devices[0].startswith("TPU"):
        if isinstance(train, Split):
            notes += filter(None, [tpu_advice(step_counts, len(train))])
        if resolved.remote_tpu and isinstance(train, Split) and not train.in_memory:
            raise DataError(f"{plan.data} does not fit in memory, and a remote TPU cannot read files on this machine")
    cluster = resolved.cluster
    modified = resolved.model.modified if isinstance(resolved.model, models.UserModel) else None
    with strategy.scope():
        compiled = compile_model(resolved, dataset, trained, devices)
        if compiled.stages is not None:  # also for a run that continues it, on whatever devices
            resolved = resolved.with_micro_batches(compiled.stages.micro_batches)
            plan = resolved.plan
        _check_fixed_batch(compiled.model, resolved, dataset)
        if plan.policy == "mixed_float16":
            notes += float16_notes(dataset, compiled.outputs, compiled.scaling.factor)
        unseeded = unseeded_state()
        model, custom_step, metrics = compiled.model, compiled.has_custom_train_step, compiled.metrics
        augmentation = choose_augmentation(
            plan, dataset, compiled.task, compiled.scaling.factor, custom_step=custom_step
        )
    remat, remat_notes = choose_parts(resolved, model, devices, device_memory, custom_step=custom_step)
    names = SeriesNames(LEARNING_RATE) if custom_step else SeriesNames(*STEP_SERIES)
    names.reserve(*GradientNorms(plan, model).names[1:])
    slow = () if custom_step else tuple(_left_out(model, metrics, names))
    if entry.coordinated:
        worker_devices = device_visibility.describe_worker_devices()
        devices = tuple(f"{device.kind.upper()}:0" for device in worker_devices[:1]) or devices
        feed: Feed = WorkerDataFeed(_by_row(train), "training")
    elif isinstance(train, Split):
        feed = choose_feed(strategy, train, device_memory, may_cache=not resolved.streams_data)
    else:
        feed = StreamFeed(strategy, train, devices[0], *((cluster.index, len(cluster.workers)) if cluster else ()))
    return Assembly(
        resolved=resolved,
        strategy=strategy,
        dataset=dataset,
        model=model,
        feed=feed,
        task=compiled.task,
        outputs=compiled.outputs,
        metrics=metrics,
        has_custom_train_step=custom_step,
        scaling=compiled.scaling,
        augmentation=augmentation,
        freezing=compiled.freezing,
        remat=remat,
        stages=compiled.stages,
        optimizer_state=compiled.optimizer_state,
        devices=devices,
        device_memory=device_memory,
        names=names,
        information=(
            *remarks(dataset.notes, dataset.changes),
            *compiled.information,
            *remat_notes,
            *slow,
            *_xla_notes(plan, model, devices),
        ),
        notes=(*dataset.warnings, *notes, *compiled.notes),
        unseeded=unseeded,
        model_modified=modified,
    )


def _check_fixed_batch(model: keras.Model, resolved: ResolvedPlan, dataset: Dataset) -> None:
    """Raise if a model takes batches of one size only, and steps would have others."""
    plan, counts, size = resolved.plan, resolved.step_counts, fixed_batch(model)
    if counts is None or size is None:
        return
    if counts.per_replica_batch != size:
        reason = f"model {plan.model} takes batches of {size} only: use {size * counts.replicas}"
        if isinstance(dataset.train, Split) and len(dataset.train) < size * counts.replicas:
            reason = f"model {plan.model} takes batches of {size} only; there are {len(dataset.train)} examples"
        raise PlanError("batch_size", plan.batch_size, reason)
    if counts.last_batch:
        reason = f"model {plan.model} takes batches of {size} only, and the last one has {counts.last_batch}: use drop"
        raise PlanError("last_batch", plan.last_batch, reason)


def _left_out(model: keras.Model, metrics: Sequence[keras.Metric], names: SeriesNames) -> Iterator[str]:
    """Notes on metrics whose states are too large to be recorded of each step, or of each epoch."""
    of_validations = MetricStates(model, metrics, names, MAX_EPOCH_STATE).left_out
    large = MetricStates(model, metrics, names, MAX_STATE).left_out
    of_epochs = [name for name in large if name not in of_validations]
    if of_epochs:
        yield f"measured of epochs and validations, not of single steps: {', '.join(of_epochs)}"
    if of_validations:
        yield f"measured of validations only, as their states are large: {', '.join(of_validations)}"


def _xla_notes(plan: Plan, model: keras.Model, devices: tuple[str, ...]) -> list[str]:
    """A note on a plan that has XLA compile what it is slow at."""
    convolves = any(isinstance(layer, _CONVOLUTIONS) for layer in all_layers(model))
    if plan.xla != "on" or not devices[0].startswith("CPU") or not convolves:
        return []
    return ["XLA is slow at convolutions on CPUs: --xla auto would measure whether it is faster"]


def _by_row(examples: Examples) -> Split:
    """The examples, which workers of a coordinator must be able to read by row.

    Raises:
        DataError: The examples are a stream.
    """
    if isinstance(examples, Split):
        return examples
    raise DataError("parameter-server needs data that can be read by row; the data is a stream: use another strategy")
