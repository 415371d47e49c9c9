"""Assembles what a plan's training needs: strategy, dataset, compiled model, optimizer and feed."""

import math
import pkgutil
from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf

from accel_engine import data
from accel_engine.data.dataset import Dataset
from accel_engine.data.pixel_scaling import Scaling
from accel_engine.errors import DataError, ModelError, PlanError, join_words
from accel_engine.keras_support.model_structure import has_custom_train_step, walk
from accel_engine.keras_support.optimizers import (
    optimizer_name,
    optimizer_of_steps,
    read_rate,
    rounded_rate,
    set_rate,
)
from accel_engine.models.build import build
from accel_engine.models.model_entry import ModelEntry
from accel_engine.models.traits import output_units, returns_logits
from accel_engine.plan import Plan
from accel_engine.plan.estimate import StepCounts, tpu_advice
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.private_names.keras_names import unseeded_state
from accel_engine.run.diagnostics import Diagnostics
from accel_engine.run.schema import LEARNING_RATE
from accel_engine.run.series_names import SeriesNames
from accel_engine.strategies.cluster_spec import ClusterSpec
from accel_engine.training.core import device_visibility
from accel_engine.training.core.feed import Feed, choose_feed
from accel_engine.training.core.label_encoding import LabelEncoding, choose_loss, encoding_for
from accel_engine.training.core.micro_batches import is_mean, penalizes_outputs
from accel_engine.training.core.run_scaling import decide_scaling
from accel_engine.training.distributed.worker_data import WorkerDataFeed
from accel_engine.training.model_analysis.layer_table import changed_layer

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
    if plan.xla == "on" and step_counts.replicas > 1 and devices[0].startswith("CPU"):
        raise PlanError("xla", "on", "XLA cannot compile a mirrored step on CPUs: use auto or off")
    cluster = resolved.cluster
    if cluster is not None and cluster.coordinated and len(cluster.workers) > 1:
        notes.append(
            f"{len(cluster.workers)} workers run steps of {step_counts.global_batch} examples asynchronously, "
            "on weights that the others are updating"
        )
    with strategy.scope():
        layers = trained.layers if trained else None
        model = build(plan.model, dataset.shape, dataset.classes, lambda model: not changed_layer(model, layers))
        notes += _check_layers(model, resolved, trained)
        scaling = decide_scaling(plan, dataset, model, trained.input_spec if trained else None)
        notes += filter(None, [join_words(scaling.note)])
        custom_step = has_custom_train_step(model)
        if custom_step and plan.gradient_norm == "on":
            raise PlanError(
                "gradient_norm",
                "on",
                f"model {plan.model} computes gradients in a custom train_step, where they cannot be read: use off",
            )
        if custom_step and resolved.coordinated:
            raise ModelError(
                f"model {plan.model} has a custom train_step, whose metrics all workers would share: "
                "choose another strategy than parameter-server"
            )
        units = output_units(model, dataset.shape)
        notes += _compile(model, resolved, units, dataset.classes)
        _check_micro_batches(model, plan, custom_step)
        notes += _scale_rate(model, plan, step_counts.replicas)
        if step_counts.replicas > 1 and len(model.metrics) > 1 and not custom_step:
            notes.append("the model's compiled metrics are not recorded: they are supported with one replica only")
        if entry.name == "central-storage" and isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer):
            raise PlanError(
                "precision",
                plan.precision,
                "central-storage does not support loss scaling: use mixed_bfloat16, or the mirrored strategy",
            )
        model.optimizer.build(model.trainable_variables)
        unseeded = unseeded_state()
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
        label_encoding=encoding_for(model.loss, units, dataset.classes),
        is_classifier=units >= dataset.classes or (units == 1 and dataset.classes == 2),
        has_custom_train_step=custom_step,
        scaling=scaling,
        devices=devices,
        names=SeriesNames(LEARNING_RATE) if custom_step else SeriesNames(*STEP_SERIES),
        notes=tuple(notes),
        unseeded=unseeded,
    )


def rate_factor(plan: Plan, replicas: int) -> float:
    """The factor by which a plan scales its learning rate for a number of replicas."""
    factors: dict[str, float] = {"none": 1.0, "linear": replicas, "square-root": math.sqrt(replicas)}
    return factors[plan.rate_scaling]


def _compile(model: keras.Model, resolved: ResolvedPlan, units: int, classes: int) -> list[str]:
    """Compile an uncompiled model; a compiled one keeps what the plan does not override."""
    plan, entry, notes = resolved.plan, resolved.model, list[str]()
    if not model.compiled:
        loss = choose_loss(units, classes, logits=returns_logits(model))
        model.compile(optimizer=_optimizer(plan), loss=loss)
        if isinstance(entry, ModelEntry):
            if plan.learning_rate is None and plan.optimizer in ("auto", "adam"):
                model.optimizer.learning_rate = entry.learning_rate
        else:
            notes.append(f"the model is not compiled: using {loss.name} and {optimizer_name(model.optimizer)}")
    elif plan.optimizer != "auto":
        notes.append(f"the plan's optimizer {plan.optimizer} replaces the model's {optimizer_name(model.optimizer)}")
        model.optimizer = _optimizer(plan)
    elif plan.learning_rate is not None and (problem := set_rate(model.optimizer, plan.learning_rate)):
        raise PlanError("learning_rate", plan.learning_rate, problem)
    if model.loss is None and not has_custom_train_step(model):
        raise ModelError(f"model {plan.model} is compiled without a loss")
    if not model.trainable_variables:
        raise ModelError(f"model {plan.model} has no trainable weights")
    return notes


def _check_layers(model: keras.Model, resolved: ResolvedPlan, trained: Diagnostics | None) -> list[str]:
    """Raise or return a note if a continued run's model differs from the one it was trained with."""
    change = changed_layer(model, trained.layers if trained else None)
    if change and isinstance(resolved.model, ModelEntry):
        raise ModelError(
            f"the run was trained with another version of model {resolved.model.name}: {change}; start a new run"
        )
    return [f"the model has changed since the run was trained: {change}"] if change else []


def _check_micro_batches(model: keras.Model, plan: Plan, custom_step: bool) -> None:
    """Raise if micro-batches would not give the same gradients as the whole batch."""
    if (plan.micro_batches or 1) == 1:
        return
    if custom_step:
        reason = f"model {plan.model} has a custom train_step"
    elif not is_mean(model.loss):
        reason = "the model's loss is not known to be a mean over examples"
    elif any(penalizes_outputs(layer) for layer, _ in walk(model)):
        reason = "an activity_regularizer of the model sums over the batch, so its share would shrink"
    else:
        return
    raise PlanError("micro_batches", plan.micro_batches, f"{reason}; leave it empty")


def _scale_rate(model: keras.Model, plan: Plan, replicas: int) -> list[str]:
    """Scale the learning rate by the number of replicas, as the plan says; returns a note."""
    factor = rate_factor(plan, replicas)
    if factor == 1:
        return []
    before = float(read_rate(model.optimizer))
    if problem := set_rate(model.optimizer, before * factor):
        raise PlanError("rate_scaling", plan.rate_scaling, problem)
    return [f"the learning rate {before:g} is multiplied by {factor:.3g} for {replicas} replicas"]


def _optimizer(plan: Plan) -> keras.optimizers.Optimizer:
    name = "adam" if plan.optimizer == "auto" else plan.optimizer
    settings = {} if plan.learning_rate is None else {"learning_rate": plan.learning_rate}
    optimizer = keras.optimizers.get({"class_name": name, "config": settings})
    # float16 gradients underflow unless the loss is scaled up; bfloat16 has the range of float32.
    return keras.optimizers.LossScaleOptimizer(optimizer) if plan.policy == "mixed_float16" else optimizer
