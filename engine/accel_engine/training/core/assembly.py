"""Assembles what a plan's training needs: strategy, dataset, compiled model, optimizer and feed."""

import pkgutil
from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf

from accel_engine import data
from accel_engine.data.dataset import Dataset
from accel_engine.data.pixel_scaling import Scaling
from accel_engine.errors import DataError
from accel_engine.keras_support.optimizers import optimizer_of_steps, read_rate
from accel_engine.plan import Plan
from accel_engine.plan.estimate import StepCounts, tpu_advice
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.private_names.keras_names import unseeded_state
from accel_engine.run.diagnostics import Diagnostics
from accel_engine.run.series_names import LEARNING_RATE, SeriesNames, rounded_rate
from accel_engine.strategies.cluster_spec import ClusterSpec
from accel_engine.training.core import device_visibility
from accel_engine.training.core.compiled_model import compile_model
from accel_engine.training.core.feed import Feed, choose_feed
from accel_engine.training.core.label_encoding import LabelEncoding, encoding_for
from accel_engine.training.core.worker_data import WorkerDataFeed

STEP_SERIES = ("loss", "accuracy", "gradient_norm", LEARNING_RATE)
"""The series recorded at each step, unless the model has a custom ``train_step``."""


@dataclass(frozen=True, slots=True)
class Assembly:
    """Everything that training a plan needs.

    Attributes:
        resolved: The plan, with its steps.
        strategy: The ``tf.distribute`` strategy.
        dataset: The training and validation examples.
        model: Built and compiled, with its optimizer's variables.
        feed: How training examples reach the replicas.
        label_encoding: The form of labels that the loss expects.
        is_classifier: Whether accuracy is defined: an output unit per class, or one unit for two classes.
        has_custom_train_step: Whether the model has a custom ``train_step``.
        scaling: How raw examples are scaled before the model.
        devices: TensorFlow's names of the logical devices that run steps; for a coordinator, those of one worker.
        names: Names of the recorded series.
        notes: Warnings for the user.
        unseeded: The state of Keras' global random generator, for layers without a seed; empty where inaccessible.
    """

    resolved: ResolvedPlan
    strategy: tf.distribute.Strategy
    dataset: Dataset
    model: keras.Model
    feed: Feed
    label_encoding: LabelEncoding
    is_classifier: bool
    has_custom_train_step: bool
    scaling: Scaling
    devices: tuple[str, ...]
    names: SeriesNames
    notes: tuple[str, ...]
    unseeded: tuple[keras.Variable, ...]

    @property
    def plan(self) -> Plan:
        """The plan."""
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
    def uses_cpu_kernels(self) -> bool:
        """Whether layers may use our kernels for CPUs; a custom ``train_step`` and other devices keep Keras'."""
        return self.on_cpu and self.plan.cpu_kernels == "auto" and not self.has_custom_train_step

    @property
    def on_tpu(self) -> bool:
        """Whether training runs on a TPU, where XLA compiles every step."""
        return self.devices[0].startswith("TPU")

    @property
    def optimizer(self) -> keras.Optimizer | None:
        """The optimizer; ``None`` where a custom ``train_step`` has several."""
        return optimizer_of_steps(self.model, custom_step=self.has_custom_train_step)

    @property
    def learning_rate(self) -> float | None:
        """The learning rate of the next step; ``None`` where it is unknown."""
        return None if self.optimizer is None else rounded_rate(float(read_rate(self.optimizer)))


def assemble(
    resolved: ResolvedPlan, devices: tuple[str, ...], device_memory: int | None, trained: Diagnostics | None = None
) -> Assembly:
    """Load the data, build the model under its strategy, and check that they fit together.

    Args:
        resolved: The plan.
        devices: TensorFlow's names of the logical devices to train on.
        device_memory: Memory of each in bytes; ``None`` for host memory.
        trained: The diagnostics of the run that continues from a checkpoint.

    Raises:
        PlanError: A field of the plan does not fit the data, the model or the devices.
        DataError: The data cannot be read.
        ModelError: The model cannot be built, or does not fit the data.
    """
    plan = resolved.plan
    keras.utils.set_random_seed(plan.seed)
    keras.config.set_dtype_policy(plan.policy)
    entry = resolved.strategy
    strategy = pkgutil.resolve_name(entry.builder)(devices, resolved)
    dataset = data.load(plan.data, image_size=plan.image_size, seed=plan.seed)
    notes = list(dataset.notes)
    resolved = resolved.with_examples(len(dataset.train), strategy.num_replicas_in_sync)
    step_counts = resolved.step_counts
    assert step_counts is not None  # noqa: S101 (they were just counted)
    if step_counts.global_batch < plan.batch_size:
        notes.append(
            f"the batch size {plan.batch_size} is not divisible by {step_counts.replicas} replicas: each takes "
            f"{step_counts.per_replica_batch}, so the global batch is {step_counts.global_batch}"
        )
    if devices[0].startswith("TPU"):
        notes += filter(None, [tpu_advice(step_counts, len(dataset.train))])
        if resolved.remote_tpu and not isinstance(dataset.train.x, np.ndarray):
            raise DataError(f"{plan.data} does not fit in memory, and a remote TPU cannot read files on this machine")
    cluster = resolved.cluster
    if cluster is not None and cluster.coordinated and len(cluster.workers) > 1:
        notes.append(
            f"{len(cluster.workers)} workers run steps of {step_counts.global_batch} examples asynchronously, "
            "on weights that the others are updating"
        )
    with strategy.scope():
        compiled = compile_model(resolved, dataset, trained)
        unseeded = unseeded_state()
    model = compiled.model
    if entry.coordinated:
        worker_devices = device_visibility.describe_worker_devices()
        devices = tuple(f"{device.kind.upper()}:0" for device in worker_devices[:1]) or devices
        feed: Feed = WorkerDataFeed(dataset.train, "training")
    else:
        feed = choose_feed(strategy, dataset.train, device_memory)
    return Assembly(
        resolved=resolved,
        strategy=strategy,
        dataset=dataset,
        model=model,
        feed=feed,
        label_encoding=encoding_for(model.loss, compiled.units, dataset.classes),
        is_classifier=compiled.units >= dataset.classes or (compiled.units == 1 and dataset.classes == 2),
        has_custom_train_step=compiled.has_custom_train_step,
        scaling=compiled.scaling,
        devices=devices,
        names=SeriesNames(LEARNING_RATE) if compiled.has_custom_train_step else SeriesNames(*STEP_SERIES),
        notes=(*notes, *compiled.notes),
        unseeded=unseeded,
    )
