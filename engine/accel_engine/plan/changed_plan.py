"""Changes of a plan: the changed plan, its options, the commands that make the changes, and the learning rate."""

import math
from collections.abc import Container, Mapping
from typing import Any

from accel_engine.errors import PlanError
from accel_engine.plan.fields import SPECS, USES
from accel_engine.plan.interval import parse_interval
from accel_engine.plan.plan import Plan, option_words
from accel_engine.plan.plan_checks import without_ignored
from accel_engine.text import shell_command

BY_COMMAND = tuple(name for name, use in USES.items() if use.changed_by == "command")
"""Fields that a command of the same name changes."""

INTERVALS = tuple(name for name in BY_COMMAND if SPECS[name].type is str)
"""Fields whose command takes a number of steps."""


def changed_plan(plan: Plan, changes: Mapping[str, Any]) -> Plan:
    """A plan with changes, without other fields that have no effect any more.

    Args:
        plan: The plan.
        changes: Fields with their new values.

    Raises:
        PlanError: A value does not fit its field, or a changed field has no effect.
    """
    return Plan.from_mapping(without_ignored({**plan.to_mapping(), **changes}, wanted=changes))


def options_text(changes: Mapping[str, Any]) -> str:
    """Changes of a plan as options of a command: ``--xla on --batch-size 256``."""
    return shell_command(word for name, value in changes.items() for word in option_words(name, value))


def command_argument(field: str, value: Any, steps_per_epoch: int) -> float | None:
    """The argument of the command with a field's name; ``None`` if no command changes the field to this value.

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
    if "learning_rate" in changes and (plan.schedule not in ("auto", "constant") or plan.warmup):
        name = f"{plan.schedule} with warmup" if plan.warmup else plan.schedule
        return f"the learning rate follows the schedule {name}, and can only be set without one"
    if "validation_every" in changes and plan.validation != "epoch":
        return f"--validation-every needs --validation epoch; the run has --validation {plan.validation}"
    return ""


def command_arguments(plan: Plan, steps_per_epoch: int | None, changes: Mapping[str, Any]) -> dict[str, float] | None:
    """Arguments of the commands that change all of the fields; ``None`` if commands cannot.

    Args:
        plan: The plan of the live run.
        steps_per_epoch: Steps of an epoch; 0 or ``None`` if they are unknown.
        changes: Fields with their new values; a learning rate is the one that the optimizer gets.
    """
    if command_problem(plan, changes):
        return None
    found = {name: command_argument(name, value, steps_per_epoch or 0) for name, value in changes.items()}
    arguments = {name: argument for name, argument in found.items() if argument is not None}
    return arguments if len(arguments) == len(changes) else None


def scaling_factor(plan: Plan, replicas: int) -> float:
    """The factor by which a plan scales its learning rate for a number of replicas."""
    factors: dict[str, float] = {"none": 1.0, "linear": replicas, "square-root": math.sqrt(replicas)}
    return factors[plan.rate_scaling]


def with_planned_rate(changes: Mapping[str, Any], plan: Plan, replicas: int) -> dict[str, Any]:
    """Changes of a plan whose optimizer has the learning rate of the changes.

    Args:
        changes: Fields with their new values; a learning rate is the optimizer's.
        plan: The plan without them, which multiplies its learning rate.
        replicas: Number of replicas.
    """
    rate = changes.get("learning_rate")
    if rate is None:
        return dict(changes)
    changed = {"rate_scaling", "learning_rate_factor"} & changes.keys()
    factored = plan.replace(**{name: changes[name] for name in changed})
    factor = scaling_factor(factored, replicas) * factored.learning_rate_factor
    return {**changes, "learning_rate": rate if factor == 1 else rate / factor}
