"""From a plan to everything that training needs: strategy, data, model, optimizer, feed."""

import math
import os
from contextlib import suppress
from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf

from accel_engine import data, models, registry, strategies
from accel_engine.cluster_spec import ClusterSpec
from accel_engine.data.dataset import Dataset
from accel_engine.data.pixel_scaling import Scaling
from accel_engine.errors import DataError, ModelError, PlanError
from accel_engine.estimate import StepCounts, tpu_advice
from accel_engine.estimate import count_steps as lay_out
from accel_engine.models.build import build
from accel_engine.models.model_entry import ModelEntry
from accel_engine.models.traits import output_units, overrides_train_step, returns_logits
from accel_engine.plan import Plan
from accel_engine.run.diagnostics import Diagnostics
from accel_engine.run.schema import LEARNING_RATE
from accel_engine.run.series_names import SeriesNames
from accel_engine.strategies import tpu_builder
from accel_engine.training import device_visibility, optimizer_rate
from accel_engine.training.feed import Feed, choose_feed
from accel_engine.training.label_encoding import LabelEncoding, choose_loss, labels_for
from accel_engine.training.layer_table import changed_layer, walk
from accel_engine.training.micro_batches import is_mean, penalizes_outputs
from accel_engine.training.run_scaling import decide_scaling
from accel_engine.training.worker_data import WorkerDataFeed

MEASURED = ("loss", "accuracy", "gradient_norm", LEARNING_RATE)
"""What is measured at a step, unless the model has a ``train_step`` of its own."""


@dataclass(frozen=True, slots=True)
class Assembly:
    """What a plan came to.

    Attributes:
        plan: The plan.
        strategy: ``tf.distribute``'s.
        dataset: The examples.
        model: Built and compiled, its optimizer's variables made.
        feed: How training examples reach the replicas.
        labels: The form of labels that the loss wants.
        classifies: Whether accuracy means something: one output of one number a class, or one for two.
        own_train_step: Whether the model brings its own ``train_step``.
        scaling: What is done to raw examples before the model takes them.
        devices: TensorFlow's names of the logical devices that take steps; of a coordinator's workers, those of one.
        schedule: How the data becomes steps.
        cluster: The processes that train together; ``None`` for this one alone.
        names: What series are called.
        notes: What the user should be told of it.
        unseeded: The state of the random numbers of layers that bring no generator; nothing where Keras hides it.
    """

    plan: Plan
    strategy: tf.distribute.Strategy
    dataset: Dataset
    model: keras.Model
    feed: Feed
    labels: LabelEncoding
    classifies: bool
    own_train_step: bool
    scaling: Scaling
    devices: tuple[str, ...]
    schedule: StepCounts
    cluster: ClusterSpec | None
    names: SeriesNames
    notes: tuple[str, ...]
    unseeded: tuple[keras.Variable, ...]

    @property
    def scale(self) -> float:
        """What raw examples are multiplied with."""
        return self.scaling.factor

    @property
    def alone(self) -> bool:
        """Whether no other process takes part in a step."""
        return self.cluster is None

    @property
    def coordinated(self) -> bool:
        """Whether this process hands steps out to others."""
        return self.cluster is not None and self.cluster.coordinated

    @property
    def simultaneous_steps(self) -> int:
        """Steps that are taken at the same time."""
        return len(self.cluster.workers) if self.cluster is not None and self.cluster.coordinated else 1

    @property
    def chief(self) -> bool:
        """Whether this process does what only one of all has to."""
        return self.cluster is None or self.cluster.chief

    @property
    def replicas(self) -> int:
        """Number of replicas."""
        return self.schedule.replicas

    @property
    def on_cpu(self) -> bool:
        """Whether no accelerator takes part."""
        return self.devices[0].startswith("CPU")

    @property
    def on_tpu(self) -> bool:
        """Whether a TPU trains, which compiles every step."""
        return self.devices[0].startswith("TPU")

    @property
    def optimizer(self) -> keras.Optimizer | None:
        """What takes the steps; ``None`` where a ``train_step`` of the model's own has several optimizers."""
        return optimizer_rate.optimizer_of_steps(self.model, own_train_step=self.own_train_step)

    @property
    def learning_rate(self) -> float | None:
        """The learning rate of the next step; ``None`` where it is not known."""
        # float32, so no more digits than it has
        return None if self.optimizer is None else float(f"{float(optimizer_rate.read(self.optimizer)):.7g}")


def assemble(
    plan: Plan, devices: tuple[str, ...], device_memory: int | None, trained: Diagnostics | None = None
) -> Assembly:
    """Read the data, build the model under its strategy, and check that all of it fits together.

    Args:
        plan: The plan.
        devices: TensorFlow's names of the logical devices to train on.
        device_memory: Memory in bytes of each; ``None`` for the host's own.
        trained: What a run that goes on from a checkpoint recorded of its model and data.

    Raises:
        PlanError: The plan asks for what the data or the devices cannot give.
        DataError: The data cannot be read.
        ModelError: The model cannot be built, or does not fit the data.
    """
    keras.utils.set_random_seed(plan.seed)
    keras.config.set_dtype_policy(plan.policy)
    entry = strategies.find(plan.strategy)
    strategy = registry.load(entry.builder)(devices, plan)
    dataset = data.load(plan.data, image_size=plan.image_size, seed=plan.seed)
    notes = list(dataset.notes)
    schedule = lay_out(plan, len(dataset.train), strategy.num_replicas_in_sync)
    if schedule.global_batch < plan.batch_size:
        notes.append(
            f"a batch of {plan.batch_size} does not divide by {schedule.replicas} replicas: each takes "
            f"{schedule.per_replica_batch}, so that a step has {schedule.global_batch} examples"
        )
    if devices[0].startswith("TPU"):
        notes += filter(None, [tpu_advice(schedule, len(dataset.train))])
        if tpu_builder.address_of(plan) and not isinstance(dataset.train.x, np.ndarray):
            raise DataError(
                f"{plan.data} does not fit in memory, and a TPU elsewhere cannot read files of this machine"
            )
    if plan.xla == "on" and schedule.replicas > 1 and devices[0].startswith("CPU"):
        raise PlanError("xla", "on", "XLA cannot compile a mirrored step on CPUs; use auto or off")
    cluster = ClusterSpec.find(os.environ) if entry.processes else None
    if cluster is not None and cluster.coordinated and len(cluster.workers) > 1:
        notes.append(
            f"{len(cluster.workers)} workers take steps at the same time, each of {schedule.global_batch} examples "
            "and with weights that others are changing"
        )
    with strategy.scope():
        layers = trained.layers if trained else None
        model = build(plan.model, dataset.shape, dataset.classes, lambda model: not changed_layer(model, layers))
        notes += _check_layers(model, plan, trained)
        scaling = decide_scaling(plan, dataset, model, trained.input_spec if trained else None)
        notes += filter(None, [scaling.note])
        own_train_step = overrides_train_step(model)
        if own_train_step and plan.gradient_norm == "on":
            raise PlanError(
                "gradient_norm",
                "on",
                f"model {plan.model} takes gradients in a train_step of its own, where they cannot be seen; use off",
            )
        if own_train_step and cluster is not None and cluster.coordinated:
            raise ModelError(
                f"model {plan.model} has a train_step of its own, whose metrics all workers would share: "
                "choose another strategy than parameter-server"
            )
        units = output_units(model, dataset.shape)
        notes += _compile(model, plan, units, dataset.classes)
        _check_micro_batches(model, plan, own_train_step)
        notes += _scale_rate(model, plan, schedule.replicas)
        if schedule.replicas > 1 and len(model.metrics) > 1 and not own_train_step:
            notes.append("the model's own metrics are left out: they are taken with one replica only")
        if entry.name == "central-storage" and isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer):
            raise PlanError(
                "precision", plan.precision, "central storage cannot scale losses; use mixed_bfloat16, or mirrored"
            )
        model.optimizer.build(model.trainable_variables)
        unseeded = _unseeded()
    if entry.coordinated:
        devices = tuple(f"{device['kind'].upper()}:0" for device in device_visibility.found_at_workers()[:1]) or devices
        feed: Feed = WorkerDataFeed(dataset.train, "training")
    else:
        feed = choose_feed(strategy, dataset.train, device_memory)
    return Assembly(
        plan=plan,
        strategy=strategy,
        dataset=dataset,
        model=model,
        feed=feed,
        labels=labels_for(model.loss, units, dataset.classes),
        classifies=units >= dataset.classes or (units == 1 and dataset.classes == 2),
        own_train_step=own_train_step,
        scaling=scaling,
        devices=devices,
        schedule=schedule,
        cluster=cluster,
        names=SeriesNames(LEARNING_RATE) if own_train_step else SeriesNames(*MEASURED),
        notes=tuple(notes),
        unseeded=unseeded,
    )


def rate_factor(plan: Plan, replicas: int) -> float:
    """What a plan wants its learning rate multiplied with."""
    factors: dict[str, float] = {"none": 1.0, "linear": replicas, "square-root": math.sqrt(replicas)}
    return factors[plan.rate_scaling]


def _unseeded() -> tuple[keras.Variable, ...]:
    """The state of Keras' own generator, which is made by this unless a layer has asked it for something already."""
    with suppress(ImportError):
        from keras.src.random.seed_generator import global_seed_generator

        return (global_seed_generator().state,)
    return ()


def optimizer_name(model: keras.Model) -> str:
    """The class of a model's optimizer, without what scales its loss."""
    return type(getattr(model.optimizer, "inner_optimizer", model.optimizer)).__name__


def _compile(model: keras.Model, plan: Plan, units: int, classes: int) -> list[str]:
    """Compile a model that is not compiled yet; a compiled one keeps what the plan does not replace."""
    notes: list[str] = []
    if not model.compiled:
        entry = models.find(plan.model)
        loss = choose_loss(units, classes, logits=returns_logits(model))
        model.compile(optimizer=_optimizer(plan), loss=loss)
        if isinstance(entry, ModelEntry):
            if plan.learning_rate is None and plan.optimizer in ("auto", "adam"):
                model.optimizer.learning_rate = entry.learning_rate
        else:
            notes.append(f"the model is not compiled: training it with {loss.name} and {optimizer_name(model)}")
    elif plan.optimizer != "auto":
        notes.append(f"the plan's optimizer {plan.optimizer} replaces the model's own {optimizer_name(model)}")
        model.optimizer = _optimizer(plan)
    elif plan.learning_rate is not None:
        try:
            model.optimizer.learning_rate = plan.learning_rate
        except (TypeError, ValueError) as error:
            raise PlanError(
                "learning_rate", plan.learning_rate, f"the model's optimizer refuses it: {error}"
            ) from error
    if model.loss is None and not overrides_train_step(model):
        raise ModelError(f"model {plan.model} is compiled without a loss, so there is nothing to minimise")
    if not model.trainable_variables:
        raise ModelError(f"model {plan.model} has no trainable weights")
    return notes


def _check_layers(model: keras.Model, plan: Plan, trained: Diagnostics | None) -> list[str]:
    """Refuse or note that a run goes on with another model than it was trained with."""
    change = changed_layer(model, trained.layers if trained else None)
    if change and isinstance(models.find(plan.model), ModelEntry):
        raise ModelError(f"the run was trained with another version of model {plan.model}: {change}; start a new run")
    return [f"the model is not the one that the run was trained with: {change}"] if change else []


def _check_micro_batches(model: keras.Model, plan: Plan, own_train_step: bool) -> None:
    """Refuse parts of a batch where their mean is not what the whole is."""
    if (plan.micro_batches or 1) == 1:
        return
    if own_train_step:
        why = f"model {plan.model} takes its batch in a train_step of its own"
    elif not is_mean(model.loss):
        why = "the loss of the model is not known to be a mean over examples, so its parts cannot be summed"
    elif any(penalizes_outputs(layer) for layer, _ in walk(model)):
        why = "an activity_regularizer of the model sums over a batch, so that in parts it would count for less"
    else:
        return
    raise PlanError("micro_batches", plan.micro_batches, f"{why}; leave it out")


def _scale_rate(model: keras.Model, plan: Plan, replicas: int) -> list[str]:
    """Scale the learning rate with the replicas, if the plan wants that."""
    factor = rate_factor(plan, replicas)
    if factor == 1:
        return []
    optimizer = model.optimizer
    before = float(tf.convert_to_tensor(optimizer.learning_rate))
    try:
        optimizer.learning_rate = before * factor
    except (TypeError, ValueError) as error:
        raise PlanError("rate_scaling", plan.rate_scaling, f"the model's optimizer refuses it: {error}") from error
    return [f"the learning rate {before:g} is multiplied by {factor:.3g} for {replicas} replicas"]


def _optimizer(plan: Plan) -> keras.optimizers.Optimizer:
    name = "adam" if plan.optimizer == "auto" else plan.optimizer
    settings = {} if plan.learning_rate is None else {"learning_rate": plan.learning_rate}
    optimizer = keras.optimizers.get({"class_name": name, "config": settings})
    # float16 gradients underflow unless the loss is scaled up; bfloat16 has the range of float32.
    return keras.optimizers.LossScaleOptimizer(optimizer) if plan.policy == "mixed_float16" else optimizer
