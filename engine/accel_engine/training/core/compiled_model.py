"""Builds a plan's model, compiles it, and checks that it can be trained as the plan says."""

import traceback
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import keras
import tensorflow as tf

from accel_engine.data.dataset import Dataset
from accel_engine.data.pixel_scaling import Scaling
from accel_engine.data.structure import Structure, map_structure
from accel_engine.errors import ModelError, PlanError, join_words
from accel_engine.keras_support import losses
from accel_engine.keras_support.divisibility import is_mean_over_examples, is_sum_over_examples, why_indivisible
from accel_engine.keras_support.model_structure import has_custom_train_step
from accel_engine.keras_support.optimizers import optimizer_name, optimizer_of_steps
from accel_engine.models.build import build, output_specs
from accel_engine.models.data_description import DataDescription
from accel_engine.models.loaded_data import describe_data
from accel_engine.models.model_entry import BuildOptions, ModelEntry
from accel_engine.models.saved_model import UNSAFE_NOTE
from accel_engine.models.traits import returns_logits
from accel_engine.plan import DEFAULTS, USES, Plan
from accel_engine.plan.fit_checks import NO_LOSS_SCALING, wrong_loss
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.plan.task_choices import IMAGENET
from accel_engine.private_names.keras_names import averages_of, replace_optimizer
from accel_engine.run.diagnostics import Diagnostics
from accel_engine.training.core.changed_data import other_meaning_notes
from accel_engine.training.core.metric_building import Measures, measures_of
from accel_engine.training.core.pipeline.stages import ModelStages, divide
from accel_engine.training.core.recipe.freezing import Freezing, freeze
from accel_engine.training.core.recipe.initial_weights import load_initial_weights
from accel_engine.training.core.recipe.loss import change_loss, choose_loss, take_mixed_targets
from accel_engine.training.core.recipe.optimizer import plan_optimizer
from accel_engine.training.core.recipe.rate_schedule import multiply_rates
from accel_engine.training.core.run_scaling import decide_scaling
from accel_engine.training.core.task import Task, task_of_model
from accel_engine.training.core.uneven_batches import uneven_note
from accel_engine.training.model_analysis.layer_table import changed_layer
from accel_engine.training.optimizer_state import OptimizerState


@dataclass(frozen=True, slots=True)
class CompiledModel:
    """A plan's model, ready to be trained."""

    model: keras.Model
    """Built and compiled, with its optimizer's variables."""
    scaling: Scaling
    """How raw examples are scaled before it."""
    task: Task
    """The task of the model."""
    outputs: Structure
    """The specs of its outputs; ``None`` if it cannot be called."""
    metrics: tuple[keras.Metric, ...]
    """Metrics besides the model's own."""
    freezing: Freezing
    """Its frozen layers."""
    has_custom_train_step: bool
    """Whether it has a custom ``train_step``."""
    information: tuple[str, ...]
    """Notes for the user, such as on the initial weights."""
    notes: tuple[str, ...]
    """Warnings for the user."""
    stages: ModelStages | None = None
    """Its stages, on their devices; ``None`` if it is not cut."""
    optimizer_state: OptimizerState | None = None
    """The state of its optimizer; ``None`` if it is beside the weights."""


def compile_model(
    resolved: ResolvedPlan, dataset: Dataset, trained: Diagnostics | None, devices: tuple[str, ...] = ()
) -> CompiledModel:
    """Build and compile a plan's model; call it in the scope of its strategy.

    Args:
        resolved: The plan, with its steps.
        dataset: The data.
        trained: The diagnostics of the run that continues from a checkpoint.
        devices: TensorFlow's names of the devices for the stages of a pipeline; without them it is not cut.

    Raises:
        PlanError: A field of the plan does not fit the model.
        ModelError: The model cannot be built, or does not fit the data.
    """
    plan = resolved.plan
    replicas = resolved.step_counts.replicas if resolved.step_counts else 1
    data = describe_data(dataset, plan.task)
    is_staged = resolved.strategy.staged and bool(devices)
    with tf.device("CPU:0") if is_staged else nullcontext():  # no device may have room for the whole model
        model = build_plan_model(plan, data, starts=trained is None)
    notes = _check_layers(model, resolved, trained)
    notes += [UNSAFE_NOTE] if plan.unsafe_load == "on" else []
    information, warnings = load_initial_weights(model, plan) if trained is None else ([], [])
    notes += warnings
    notes += other_meaning_notes(dataset, plan) if trained is None else []
    scaling = decide_scaling(plan, dataset, model, trained.input_spec if trained else None)
    notes += filter(None, [join_words(scaling.note)])
    custom_step = has_custom_train_step(model)
    if custom_step:
        _check_custom_step(model, resolved)
    outputs = output_specs(model, data)
    wrong = wrong_loss(plan, data.learned_task) if isinstance(resolved.model, ModelEntry) else ()
    if wrong:  # a function has only now told the task
        raise PlanError("loss", plan.loss, *wrong)
    notes += _compile(model, resolved, outputs, dataset, custom_step=custom_step)
    notes += take_mixed_targets(model, outputs, dataset, plan)
    task = task_of_model(model, outputs, dataset, plan)
    notes += filter(None, [losses.logits_note(model), losses.tversky_note(model.loss), task.note])
    measures = Measures()
    if not custom_step:
        batch = resolved.step_counts.per_replica_batch if resolved.step_counts else 1
        measures = measures_of(model, task, outputs, dataset, plan, batch)
        information += measures.information
        notes += measures.notes
    _check_micro_batches(model, plan, custom_step)
    if replicas > 1 and not custom_step and not losses.is_keras_defined(type(model).compute_loss):
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
        raise PlanError("precision", plan.precision, NO_LOSS_SCALING)
    if replicas > 1 and not custom_step and losses.is_over_batch(model.loss):
        notes.append(
            f"as in fit, each of {replicas} replicas computes {losses.loss_name(model.loss)} over the examples that it "
            "takes, not over the whole batch: one device would have other losses"
        )
    if resolved.step_counts and not resolved.coordinated:
        notes += uneven_note(resolved.step_counts, dataset.train, _why_inexact(model, custom_step=custom_step))
    stages = None
    if is_staged:
        batch = resolved.step_counts.per_replica_batch if resolved.step_counts else 1
        stages = divide(model, plan, devices, batch, data.inputs)
        stages.place()
        stages.run_in_place()
        information += stages.information
        notes += stages.notes
    freezing = freeze(model, plan)
    if custom_step and replicas > 1:
        _build_optimizers(model, dataset, resolved.step_counts.per_replica_batch if resolved.step_counts else 1)
    placed = None
    if plan.optimizer_state != "device":
        placed = OptimizerState(plan, model.optimizer, freezing.variables)
        information.append(placed.note)
    elif model.optimizer is not None:
        model.optimizer.build(list(freezing.variables))
    if custom_step and optimizer_of_steps(model, custom_step=True) is not None and averages_of(model):
        notes.append(
            "as in fit, the model is validated with its weights, and saved with the moving averages of its optimizer"
        )
    return CompiledModel(
        model,
        scaling,
        task,
        outputs,
        measures.metrics,
        freezing,
        custom_step,
        tuple(information),
        tuple(notes),
        stages,
        placed,
    )


def _check_custom_step(model: keras.Model, resolved: ResolvedPlan) -> None:
    """Raise if a custom ``train_step`` cannot do what the plan says."""
    plan, name = resolved.plan, resolved.plan.model
    reasons = {"train_step": "a custom train_step, which decides this itself"}
    if optimizer_of_steps(model, custom_step=True) is None:
        reasons["optimizers"] = "a custom train_step with several optimizers"
    for field, use in USES.items():
        if use.replaced_by in reasons and (value := getattr(plan, field)) != DEFAULTS[field]:
            raise PlanError(field, value, f"model {name} has {reasons[use.replaced_by]}")
    if resolved.coordinated:
        raise ModelError(
            f"model {name} has a custom train_step, whose metrics all workers would share: "
            "choose another strategy than parameter-server"
        )


def _compile(
    model: keras.Model, resolved: ResolvedPlan, outputs: Structure, dataset: Dataset, *, custom_step: bool
) -> list[str]:
    """Compile an uncompiled model; a compiled one keeps what the plan does not override."""
    plan, entry, notes = resolved.plan, resolved.model, list[str]()
    optimizer, optimizer_notes = plan_optimizer(
        plan,
        model,
        default_rate=entry.learning_rate if isinstance(entry, ModelEntry) else None,
        replicas=resolved.step_counts.replicas if resolved.step_counts else 1,
        total_steps=resolved.step_counts.total_steps if resolved.step_counts else 0,
    )
    if not model.compiled:
        loss = choose_loss(outputs, dataset, plan, logits=returns_logits(model))
        model.compile(optimizer=optimizer, loss=loss)
        if not isinstance(entry, ModelEntry):
            notes.append(f"the model is not compiled: using {loss.name} and {optimizer_name(model.optimizer)}")
    else:
        if plan.optimizer != "auto":
            before = optimizer_name(model.optimizer)
            notes.append(f"the plan's optimizer {plan.optimizer} replaces the model's {before}")
        if optimizer is not model.optimizer:
            replace_optimizer(model, optimizer)
        notes += [] if custom_step else change_loss(model, outputs, dataset, plan)
    notes += optimizer_notes
    multiply_rates(model, plan.learning_rate_factor)
    if not model.trainable_variables:
        raise ModelError(f"model {plan.model} has no trainable weights")
    return notes


def _why_inexact(model: keras.Model, *, custom_step: bool) -> str:
    """Why examples that are on several replicas cannot be counted once; empty if they can."""
    if custom_step:
        return "the model has a custom train_step"
    if not losses.is_keras_defined(type(model).compute_loss):
        return "the model computes its own loss"
    if is_mean_over_examples(model) or is_sum_over_examples(model):
        return ""
    return f"{losses.loss_name(model.loss)} is not known to be a mean or a sum over examples"


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
    elif not losses.is_mean(model.loss):
        reason = "the model's loss is not known to be a mean over examples"
    elif not (reason := why_indivisible(model)):
        return
    raise PlanError("micro_batches", plan.micro_batches, f"{reason}; leave it empty")


def _build_optimizers(model: keras.Model, dataset: Dataset, batch: int) -> None:
    """Create the variables of a custom step's optimizers: on replicas, they could not be created in the step itself.

    The step is traced once, with updates that only create the variables. What is wrong with it is in the log, and
    reported when training traces it.

    Args:
        model: Built and compiled, with a custom ``train_step``.
        dataset: The data.
        batch: The per-replica batch size.
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
    with patches[0], patches[1], keras.StatelessScope():
        step = tf.function(model.train_step, autograph=True)
        try:
            step.get_concrete_function(parts if len(parts) > 1 else parts[0])
        except Exception:  # noqa: BLE001 (a user's train_step may raise anything)
            traceback.print_exc()


def build_plan_model(plan: Plan, data: DataDescription, *, starts: bool = False) -> keras.Model:
    """Build a plan's model; see :func:`accel_engine.models.build.build`.

    Args:
        plan: The plan.
        data: The data.
        starts: Whether its training starts, with the plan's initial weights; later they come from a checkpoint.

    Raises:
        PlanError: There is no such model, or no default for the data.
        ModelError: The model cannot be built, or does not fit the data.
    """
    pretrained = plan.initial_weights == IMAGENET
    options = BuildOptions(
        pretrained=pretrained,
        download=pretrained and starts,
        custom_objects=plan.custom_objects,
        unsafe=plan.unsafe_load == "on",
    )
    return build(plan.model, data, options)
