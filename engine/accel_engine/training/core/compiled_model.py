"""Builds a plan's model, compiles it, and checks that it can be trained as the plan says."""

import math
from dataclasses import dataclass

import keras

from accel_engine.data.dataset import Dataset
from accel_engine.data.pixel_scaling import Scaling
from accel_engine.errors import ModelError, PlanError, join_words
from accel_engine.keras_support.model_structure import has_custom_train_step, walk
from accel_engine.keras_support.optimizers import optimizer_name, read_rate, set_rate
from accel_engine.models.build import build
from accel_engine.models.model_entry import ModelEntry
from accel_engine.models.traits import output_units, returns_logits
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.run.diagnostics import Diagnostics
from accel_engine.training.core.label_encoding import choose_loss
from accel_engine.training.core.micro_batches import is_mean, penalizes_outputs
from accel_engine.training.core.run_scaling import decide_scaling
from accel_engine.training.model_analysis.layer_table import changed_layer


@dataclass(frozen=True, slots=True)
class CompiledModel:
    """A plan's model, ready to be trained.

    Attributes:
        model: Built and compiled, with its optimizer's variables.
        scaling: How raw examples are scaled before it.
        units: Number of its output units.
        has_custom_train_step: Whether it has a custom ``train_step``.
        notes: Warnings for the user.
    """

    model: keras.Model
    scaling: Scaling
    units: int
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
    model = build(plan.model, dataset.shape, dataset.classes, lambda model: not changed_layer(model, layers))
    notes = _check_layers(model, resolved, trained)
    scaling = decide_scaling(plan, dataset, model, trained.input_spec if trained else None)
    notes += filter(None, [join_words(scaling.note)])
    custom_step = has_custom_train_step(model)
    if custom_step:
        _check_custom_step(resolved)
    units = output_units(model, dataset.shape)
    notes += _compile(model, resolved, units, dataset.classes)
    _check_micro_batches(model, plan, custom_step)
    notes += _scale_rate(model, plan, replicas)
    if replicas > 1 and len(model.metrics) > 1 and not custom_step:
        notes.append("the model's compiled metrics are not recorded: they are supported with one replica only")
    if resolved.strategy.name == "central-storage" and isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer):
        raise PlanError(
            "precision",
            plan.precision,
            "central-storage does not support loss scaling: use mixed_bfloat16, or the mirrored strategy",
        )
    model.optimizer.build(model.trainable_variables)
    return CompiledModel(model, scaling, units, custom_step, tuple(notes))


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
    if before and (problem := set_rate(model.optimizer, before * factor)):
        raise PlanError("rate_scaling", plan.rate_scaling, problem)
    return [f"the learning rate {before:g} is multiplied by {factor:.3g} for {replicas} replicas"]


def _optimizer(plan: Plan) -> keras.optimizers.Optimizer:
    name = "adam" if plan.optimizer == "auto" else plan.optimizer
    settings = {} if plan.learning_rate is None else {"learning_rate": plan.learning_rate}
    optimizer = keras.optimizers.get({"class_name": name, "config": settings})
    # float16 gradients underflow unless the loss is scaled up; bfloat16 has the range of float32.
    return keras.optimizers.LossScaleOptimizer(optimizer) if plan.policy == "mixed_float16" else optimizer
