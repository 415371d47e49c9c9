"""Fields of a plan that a command changes in a live run, without stopping it."""

from collections.abc import Container, Mapping
from typing import Any

from accel_engine.errors import PlanError
from accel_engine.plan import SPECS, USES, Plan
from accel_engine.plan.interval import parse_interval

BY_COMMAND = tuple(name for name, use in USES.items() if use.changed_by == "command")
"""Fields that a command of the same name changes."""

INTERVALS = tuple(name for name in BY_COMMAND if SPECS[name].type is str)
"""Those whose command takes a number of steps."""


def command_argument(field: str, value: Any, steps_per_epoch: int) -> float | None:
    """What the command with a field's name takes; ``None`` if no command changes the field to this value.

    Args:
        field: Name of the field.
        value: Its new value.
        steps_per_epoch: Steps of an epoch; 0 if they are unknown.
    """
    if field not in BY_COMMAND or value is None:
        return None
    if field not in INTERVALS:
        return float(value)
    try:
        interval = parse_interval(field, str(value))
    except PlanError:  # checkpoints by themselves: auto
        return None
    if interval.unit == "steps":
        return float(interval.count)
    return float(interval.count * steps_per_epoch) if interval.unit == "epochs" and steps_per_epoch else None


def command_problem(plan: Plan, changes: Container[str]) -> str:
    """Why commands cannot change fields of a live run with this plan; empty if they can.

    Args:
        plan: The plan.
        changes: Names of the fields.
    """
    if "learning_rate" in changes and plan.schedule not in ("auto", "constant"):
        return f"the learning rate follows the schedule {plan.schedule}, and can only be set without one"
    if "validation_every" in changes and plan.validation != "epoch":
        return f"--validation-every needs --validation epoch; the run has --validation {plan.validation}"
    return ""


def command_arguments(plan: Plan, steps_per_epoch: int | None, changes: Mapping[str, Any]) -> dict[str, float] | None:
    """What the commands take that change all of the fields; ``None`` if commands cannot.

    Args:
        plan: The plan of the live run.
        steps_per_epoch: Steps of an epoch; 0 if they are unknown.
        changes: Fields with their new values; a learning rate is the one that the optimizer gets.
    """
    if command_problem(plan, changes):
        return None
    found = {name: command_argument(name, value, steps_per_epoch or 0) for name, value in changes.items()}
    arguments = {name: argument for name, argument in found.items() if argument is not None}
    return arguments if len(arguments) == len(changes) else None
