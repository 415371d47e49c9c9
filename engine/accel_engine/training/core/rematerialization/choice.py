"""Decides which parts of a plan's model are computed again for their gradients."""

from fnmatch import fnmatchcase

import keras

from accel_engine.errors import FieldValue, PlanError
from accel_engine.keras_support.losses import is_keras_defined
from accel_engine.keras_support.model_structure import parameter_count, walk
from accel_engine.memory import available_memory
from accel_engine.plan import Plan
from accel_engine.plan.array_bytes import saves_enough, step_bytes
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.private_names.keras_names import all_layers
from accel_engine.text import suggestion
from accel_engine.training.core.rematerialization.division import divide_by_layers, divide_model
from accel_engine.training.core.rematerialization.parts import ModelParts
from accel_engine.words import numbers


def choose_parts(
    resolved: ResolvedPlan,
    model: keras.Model,
    devices: tuple[str, ...],
    device_memory: int | None,
    *,
    custom_step: bool,
) -> tuple[ModelParts, list[str]]:
    """The parts of a model that are computed again, and notes for the user.

    Args:
        resolved: The plan, with its steps.
        model: Built and compiled.
        devices: TensorFlow's names of the logical devices to train on.
        device_memory: Memory of each in bytes; ``None`` for host memory, 0 for a TPU, or if it is unknown.
        custom_step: Whether the model has a custom ``train_step``.

    Raises:
        PlanError: The model cannot be trained so, or has no such layers.
    """
    if resolved.strategy.staged:  # a stage holds the activations of a few micro-batches only
        notes = ["rematerialization: all stages but the last one are computed again for the gradients"]
        return ModelParts(), notes if resolved.plan.remat == "on" else []
    if resolved.plan.remat == "on":
        return planned_parts(resolved.plan, model, custom_step=custom_step)
    if resolved.plan.remat == "off" or custom_step or resolved.coordinated or device_memory == 0:
        return ModelParts(), []
    if device_memory is None:
        device_memory = available_memory() // (len(devices) * max(1, resolved.plan.local_workers))
    return _parts_if_needed(resolved, model, device_memory)


def planned_parts(plan: Plan, model: keras.Model, *, custom_step: bool) -> tuple[ModelParts, list[str]]:
    """The parts of a plan with ``--remat on``, and notes for the user.

    Raises:
        PlanError: The model cannot be trained so, or has no such layers.
    """
    if custom_step:
        reason = f"model {plan.model} has a custom train_step, which computes its gradients itself: use "
        raise PlanError("remat", "on", reason, FieldValue("remat", "off"))
    parts = divide_by_layers(model, _chosen_layers(model, plan)) if plan.remat_layers else divide_model(model)
    if not parts.count:
        return parts, ["rematerialization has no effect: the model has no parts that would save memory"]
    return parts, [_described(parts)]


def _parts_if_needed(resolved: ResolvedPlan, model: keras.Model, memory: int) -> tuple[ModelParts, list[str]]:
    """The parts of a model that may not fit in ``memory`` bytes otherwise, and notes for the user."""
    parts = divide_model(model) if is_all_keras(model) else ModelParts()
    needed = _estimated_memory(resolved, model, parts)
    if needed is None or needed <= memory:
        return ModelParts(), []
    why = f"a step may need {numbers.size(needed)}, and a device has {numbers.size(memory)}; --remat off turns it off"
    return parts, [f"{_described(parts)}: {why}"]


def _estimated_memory(resolved: ResolvedPlan, model: keras.Model, parts: ModelParts) -> int | None:
    """Bytes that a step needs on each device without rematerialization; ``None`` if unknown or it saves too little."""
    if not parts.activations or not saves_enough(parts.activations, parts.saved_share):
        return None
    counts = resolved.step_counts
    batch, replicas = (counts.per_replica_batch, counts.replicas) if counts else (1, 1)
    trainable = parameter_count(model.trainable_weights)
    return step_bytes(resolved.plan, model.count_params(), trainable, parts.activations, batch, replicas)


def is_all_keras(model: keras.Model) -> bool:
    """Whether all layers are Keras' own, which can be computed again: others might fail a run that needs no memory."""
    own = [layer for layer in all_layers(model) if not is_keras_defined(layer)]
    return not own and not any(isinstance(layer, keras.layers.Lambda) for layer in all_layers(model))


def _described(parts: ModelParts) -> str:
    several = "part of the model is" if parts.count == 1 else "parts of the model are"
    return f"rematerialization: {parts.count} {several} computed again for the gradients"


def _chosen_layers(model: keras.Model, plan: Plan) -> list[list[keras.Layer]]:
    """The layers that each of a plan's names or patterns stands for.

    Raises:
        PlanError: A name matches no layer.
    """
    layers = list(dict.fromkeys(layer for layer, _ in walk(model)))
    groups = [[layer for layer in layers if fnmatchcase(layer.name, name)] for name in plan.remat_layers]
    for name, group in zip(plan.remat_layers, groups, strict=True):
        if not group:
            names = [layer.name for layer in layers]
            reason = f"no layer is named {name!r}; {suggestion(name, names)}"
            raise PlanError("remat_layers", plan.remat_layers, reason)
    return groups
