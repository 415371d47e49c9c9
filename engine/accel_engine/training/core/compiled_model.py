"""Builds a plan's model, compiles it, and checks that it can be trained as the plan says."""

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import keras
import tensorflow as tf

from accel_engine.data.dataset import Dataset
from accel_engine.data.pixel_scaling import Scaling
from accel_engine.data.structure import Batch, Structure, flatten, map_structure
from accel_engine.errors import ModelError, PlanError, join_words
from accel_engine.keras_support.losses import is_keras_defined
from accel_engine.keras_support.model_structure import has_custom_train_step, walk
from accel_engine.keras_support.optimizers import optimizer_name, read_rate, set_rate
from accel_engine.models.build import build, output_specs
from accel_engine.models.loaded_data import describe_data
from accel_engine.models.model_entry import ModelEntry
from accel_engine.models.traits import returns_logits
from accel_engine.models.user_code import reason
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.private_names.keras_names import all_layers, kept_losses
from accel_engine.run.diagnostics import Diagnostics
from accel_engine.training.core.metric_states import call_model, compute_loss, not_additive, own_metrics
from accel_engine.training.core.micro_batches import is_mean, penalizes_outputs
from accel_engine.training.core.run_scaling import decide_scaling
from accel_engine.training.core.task import Task, check_outputs, choose_loss, custom_task, find_task
from accel_engine.training.model_analysis.layer_table import changed_layer

_MOST_TRIED = 10**7
"""Values of an example up to which the user's own metrics are tried before training."""


@dataclass(frozen=True, slots=True)
class CompiledModel:
    """A plan's model, ready to be trained.

    Attributes:
        model: Built and compiled, with its optimizer's variables.
        scaling: How raw examples are scaled before it.
        task: What it learns.
        outputs: The specs of its outputs; ``None`` if it cannot be called.
        has_custom_train_step: Whether it has a custom ``train_step``.
        notes: Warnings for the user.
    """

    model: keras.Model
    scaling: Scaling
    task: Task
    outputs: Structure
    has_custom_train_step: bool
    notes: tuple[str, ...]


def compile_model(resolved: ResolvedPlan, dataset: Dataset, trained: Diagnostics | None) -> CompiledModel:
    """Build and compile a plan's model; call it in the scope of its strategy.

    Args:
        resolved: The plan, with its steps.
        dataset: The data.
        trained: The diagnostics of the run that continues from a checkpoint.

    Raises:
        PlanError: A field of the plan does not fit the model.
        ModelError: The model cannot be built, or does not fit the data.
    """
    plan, layers = resolved.plan, trained.layers if trained else None
    replicas = resolved.step_counts.replicas if resolved.step_counts else 1
    data = describe_data(dataset, plan.task)
    model = build(plan.model, data, lambda model: not changed_layer(model, layers))
    notes = _check_layers(model, resolved, trained)
    scaling = decide_scaling(plan, dataset, model, trained.input_spec if trained else None)
    notes += filter(None, [join_words(scaling.note)])
    custom_step = has_custom_train_step(model)
    if custom_step:
        _check_custom_step(resolved)
    outputs = output_specs(model, data)
    notes += _compile(model, resolved, outputs, dataset)
    task = custom_task(model, outputs, dataset) if custom_step else find_task(model, outputs, dataset, plan.task)
    check_outputs(task, outputs, dataset, plan.model)
    notes += filter(None, [task.note])
    if not custom_step:
        batch = resolved.step_counts.per_replica_batch if resolved.step_counts else 1
        _build_metrics(model, task, outputs, dataset, batch)
        notes += _check_metrics(model, task, outputs, dataset)
    _check_micro_batches(model, plan, custom_step)
    notes += _scale_rate(model, plan, replicas)
    if replicas > 1 and not custom_step and not is_keras_defined(type(model).compute_loss):
        notes.append(
            f"the gradients of {replicas} replicas are added: as in fit, the model's compute_loss must "
            f"divide the loss by {replicas}, as Keras' losses do"
        )
    if replicas > 1 and custom_step:
        notes.append(
            f"what train_step returns is recorded as the mean over {replicas} replicas; a loss of compute_loss is "
            f"divided by {replicas}, as in fit"
        )
    if resolved.strategy.name == "central-storage" and isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer):
        raise PlanError(
            "precision",
            plan.precision,
            "central-storage does not support loss scaling: use mixed_bfloat16, or the mirrored strategy",
        )
    if custom_step and replicas > 1:
        _build_optimizers(model, dataset, resolved.step_counts.per_replica_batch if resolved.step_counts else 1)
    if model.optimizer is not None:
        model.optimizer.build(model.trainable_variables)
    return CompiledModel(model, scaling, task, outputs, custom_step, tuple(notes))


def rate_factor(plan: Plan, replicas: int) -> float:
    """The factor by which a plan scales its learning rate for a number of replicas."""
    factors: dict[str, float] = {"none": 1.0, "linear": replicas, "square-root": math.sqrt(replicas)}
    return factors[plan.rate_scaling]


def _check_custom_step(resolved: ResolvedPlan) -> None:
    """Raise if a custom ``train_step`` cannot do what the plan says."""
    name = resolved.plan.model
    if resolved.plan.gradient_norm == "on":
        reason = f"model {name} computes gradients in a custom train_step, where they cannot be read: use off"
        raise PlanError("gradient_norm", "on", reason)
    if resolved.coordinated:
        raise ModelError(
            f"model {name} has a custom train_step, whose metrics all workers would share: "
            "choose another strategy than parameter-server"
        )


def _build_metrics(model: keras.Model, task: Task, outputs: Structure, dataset: Dataset, batch: int) -> None:
    """Create the variables of the model's losses and metrics.

    Raises:
        ModelError: The loss or a metric does not fit the outputs and the targets, or there is none.
    """

    def evaluate(inputs: Structure, targets: Structure, outputs: Structure) -> tf.Tensor:
        encoded = task.encode(targets, inputs)
        if model.loss is None:  # its layers may add the loss when they are called
            weights = [(variable, tf.convert_to_tensor(variable.value)) for variable in model.trainable_variables]
            with keras.StatelessScope(state_mapping=weights, collect_losses=True):
                outputs = call_model(model, inputs, training=True)
                model.compute_metrics(inputs, encoded, outputs, None)
                return compute_loss(model, Batch(inputs, encoded), outputs, training=True)
        model.compute_metrics(inputs, encoded, outputs, None)
        return compute_loss(model, Batch(inputs, encoded), outputs, training=True)

    def spec_of(each: Any, first: int) -> tf.TensorSpec:
        return tf.TensorSpec((batch, *each.shape[first:]), each.dtype)

    raw = [map_structure(lambda each: spec_of(each, 0), part) for part in dataset.spec[:2]]
    specs = *raw, keras.tree.map_structure(lambda each: spec_of(each, 1), outputs)
    try:
        # The variables are created after the scope, as they must be outside of a graph.
        with kept_losses(model), keras.StatelessScope():
            tf.function(evaluate, autograph=False).get_concrete_function(*specs)
    except Exception as error:
        raise ModelError(f"the model's loss or metrics do not fit the data: {reason(error)}") from error


def _check_metrics(model: keras.Model, task: Task, outputs: Structure, dataset: Dataset) -> list[str]:
    """A note on metrics whose values over several batches differ from those of ``fit``."""
    specs = [*flatten(dataset.spec[:2]), *flatten(outputs)]
    if not own_metrics(model) or sum(math.prod(side or 1 for side in spec.shape) for spec in specs) > _MOST_TRIED:
        return []

    def ones(spec: Any) -> tf.Tensor:
        shape = (2, *(side or 1 for side in spec.shape))
        return tf.zeros(shape, spec.dtype) if spec.dtype == "string" else tf.ones(shape, spec.dtype)

    def any_values(spec: Any) -> tf.Tensor:
        shape = (2, *(side or 1 for side in spec.shape[1:]))
        return tf.cast(tf.random.stateless_uniform(shape, (0, 0)), spec.dtype)

    try:
        inputs, targets = (map_structure(ones, part) for part in dataset.spec[:2])
        some = keras.tree.map_structure(any_values, outputs)
        names = not_additive(model, Batch(inputs, task.encode(targets, inputs)), some)
    except Exception:  # noqa: BLE001 (a metric that cannot take these values)
        return []
    return [
        f"metric {name} does not keep sums that start at zero, and its states are added over batches and replicas: "
        "only its value of a single batch is right"
        for name in names
    ]


def _build_optimizers(model: keras.Model, dataset: Dataset, batch: int) -> None:
    """Create the variables of a custom step's optimizers: on replicas, they could not be created in the step itself.

    The step is traced once, with updates that only create the variables. What else is wrong with it is reported when
    training traces it.
    """
    spec = map_structure(lambda each: tf.TensorSpec((batch, *each.shape), each.dtype), dataset.spec)
    parts = tuple(part for part in spec if part is not None)

    def build(optimizer: keras.Optimizer, gradients: Any, variables: Any = None) -> None:
        del gradients
        optimizer.build(variables)

    def no_gradient(tape: tf.GradientTape, target: Any, sources: Any, *_: Any, **__: Any) -> Any:
        del tape, target
        return keras.tree.map_structure(lambda each: tf.zeros(each.shape, each.dtype), sources)

    patches = patch.object(keras.Optimizer, "apply", build), patch.object(tf.GradientTape, "gradient", no_gradient)
    with patches[0], patches[1], suppress(Exception), keras.StatelessScope():
        step = tf.function(model.train_step, autograph=True)
        step.get_concrete_function(parts if len(parts) > 1 else parts[0])


def _compile(model: keras.Model, resolved: ResolvedPlan, outputs: Structure, dataset: Dataset) -> list[str]:
    """Compile an uncompiled model; a compiled one keeps what the plan does not override."""
    plan, entry, notes = resolved.plan, resolved.model, list[str]()
    if not model.compiled:
        loss = choose_loss(outputs, dataset, plan.task, logits=returns_logits(model))
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
    elif not is_keras_defined(type(model).compute_loss):
        reason = "the model computes its own loss"
    elif any(
        isinstance(layer, keras.layers.Masking) or getattr(layer, "mask_zero", False) for layer in all_layers(model)
    ):
        reason = "the model masks tokens, over whose number a loss is the mean"
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
    if before and (problem := set_rate(model.optimizer, before * factor)):
        raise PlanError("rate_scaling", plan.rate_scaling, problem)
    return [f"the learning rate {before:g} is multiplied by {factor:.3g} for {replicas} replicas"]


def _optimizer(plan: Plan) -> keras.optimizers.Optimizer:
    name = "adam" if plan.optimizer == "auto" else plan.optimizer
    settings = {} if plan.learning_rate is None else {"learning_rate": plan.learning_rate}
    optimizer = keras.optimizers.get({"class_name": name, "config": settings})
    # float16 gradients underflow unless the loss is scaled up; bfloat16 has the range of float32.
    return keras.optimizers.LossScaleOptimizer(optimizer) if plan.policy == "mixed_float16" else optimizer
