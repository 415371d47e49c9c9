"""Creates a plan's optimizer, or gives the settings of a plan to the optimizer of a compiled model."""

from typing import Any

import keras

from accel_engine.errors import FieldValue, PlanError
from accel_engine.keras_support.optimizers import inner_optimizer, optimizer_name, read_rate, set_rate
from accel_engine.plan import USES, Plan
from accel_engine.plan.changed_plan import scaling_factor
from accel_engine.plan.plan_checks import CLIPPING
from accel_engine.private_names.keras_names import schedule_of
from accel_engine.training.core.recipe.rate_schedule import make_schedule
from accel_engine.user_code import reason

_ARGUMENTS = {name: use.argument for name, use in USES.items() if use.argument}
"""Keras' arguments of optimizers, by the fields of a plan."""

CLIPPING_ARGUMENTS = tuple(_ARGUMENTS[field] for field in CLIPPING)
"""Arguments that clip gradients."""


def clips_over_replicas(plan: Plan, replicas: int) -> bool:
    """Whether a plan clips the gradients that are summed over several replicas.

    Keras clips the gradients of each replica. Then two replicas would not train as one does on the same batch.
    """
    return replicas > 1 and any(getattr(plan, field) is not None for field in CLIPPING)


def plan_optimizer(
    plan: Plan, model: keras.Model, *, default_rate: float | None, replicas: int, total_steps: int
) -> tuple[keras.Optimizer, list[str]]:
    """The optimizer that trains a model as a plan says.

    Args:
        plan: The plan.
        model: The model, compiled or not.
        default_rate: The learning rate of a catalogue model with Adam; ``None`` for the optimizer's own.
        replicas: Number of replicas.
        total_steps: Steps of all epochs; 0 if they are unknown.

    Returns:
        The optimizer: a compiled model's own where the plan sets at most its learning rate, else one to be built.
        Notes for the user.

    Raises:
        PlanError: The optimizer does not take a field of the plan.
    """
    own = model.optimizer if model.compiled and plan.optimizer == "auto" else None
    changes, factor = _planned_arguments(plan, replicas), scaling_factor(plan, replicas)
    if own is None:
        optimizer = _class_of(plan)()
        if default_rate is not None and plan.optimizer in ("auto", "adam"):
            optimizer.learning_rate = default_rate
    else:
        optimizer = inner_optimizer(own)
    before = _highest_rate(plan, optimizer)
    notes = []
    if factor != 1:
        notes.append(f"the learning rate {before:g} is multiplied by {factor:.3g} for {replicas} replicas")
    if plan.schedule != "auto":
        changes["learning_rate"] = make_schedule(plan, before * factor, total_steps)
    elif (plan.learning_rate is not None or factor != 1) and before:
        field = "rate_scaling" if plan.learning_rate is None else "learning_rate"
        _set_rate(plan, field, optimizer, before * factor)
    if changes:
        optimizer = _with_arguments(plan, optimizer, changes)
        if own is not None and own.built:
            notes.append("the state of the saved model's optimizer is not used: the plan changes its settings")
    elif own is not None:
        return own, notes
    # float16 gradients underflow unless the loss is scaled up; bfloat16 has the range of float32.
    scales = plan.policy == "mixed_float16" or inner_optimizer(own) is not own
    return keras.optimizers.LossScaleOptimizer(optimizer) if scales else optimizer, notes


def _class_of(plan: Plan) -> type[keras.Optimizer]:
    """Keras' class; ``keras.optimizers.get`` does not know all of them by name."""
    name = "adam" if plan.optimizer == "auto" else plan.optimizer
    kinds: dict[str, type[keras.Optimizer]] = {kind.lower(): found for kind, found in vars(keras.optimizers).items()}
    return kinds[name]


def _planned_arguments(plan: Plan, replicas: int) -> dict[str, Any]:
    """Keras' arguments for the fields that the plan sets."""
    values = {argument: getattr(plan, field) for field, argument in _ARGUMENTS.items()}
    values = {argument: value for argument, value in values.items() if value not in (None, "off")}
    if limits := {argument: value / replicas for argument, value in values.items() if argument in CLIPPING_ARGUMENTS}:
        # A replica's share of the summed gradients has its share of the limit: see accel_engine.training.core.step.
        values |= {**dict.fromkeys(CLIPPING_ARGUMENTS), **limits}
    if "ema_momentum" in values:
        values["use_ema"] = True
    return {argument: True if value == "on" else value for argument, value in values.items()}


def _highest_rate(plan: Plan, optimizer: Any) -> float:
    """The learning rate of a plan or its optimizer, before it is scaled."""
    if plan.learning_rate is not None:
        return plan.learning_rate
    schedule = schedule_of(optimizer)
    if schedule is not None and plan.schedule != "auto":
        reason = f"replaces the model's {type(schedule).__name__}, whose highest rate is unknown: set "
        raise PlanError("schedule", plan.schedule, reason, FieldValue("learning_rate"))
    return float(read_rate(optimizer))


def _set_rate(plan: Plan, field: str, optimizer: Any, rate: float) -> None:
    schedule = schedule_of(optimizer)
    if schedule is not None:
        reason = f"the model's optimizer has the schedule {type(schedule).__name__}: replace it with "
        raise PlanError(field, getattr(plan, field), reason, FieldValue("schedule", "constant"))
    if problem := set_rate(optimizer, rate):
        raise PlanError(field, getattr(plan, field), problem)


def _with_arguments(plan: Plan, optimizer: Any, changes: dict[str, Any]) -> Any:
    """A new optimizer with some arguments changed."""
    try:
        return type(optimizer).from_config({**optimizer.get_config(), **changes})
    except Exception as error:
        field = next((name for name, argument in _ARGUMENTS.items() if argument in changes), "schedule")
        problem = f"{optimizer_name(optimizer)} does not accept it: {reason(error)}"
        raise PlanError(field, getattr(plan, field), problem) from error
