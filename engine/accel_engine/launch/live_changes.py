"""Fields of a plan that a command changes in a live run, without stopping it."""

from typing import Any

from accel_engine.errors import PlanError
from accel_engine.plan.interval import parse_interval

INTERVALS = ("validation_every", "checkpoint_every")
"""Fields whose command takes a number of steps."""


def command_argument(field: str, value: Any, steps_per_epoch: int) -> float | None:
    """What the command with a field's name takes; ``None`` if no command changes the field to this value.

    Args:
        field: Name of the field.
        value: Its new value.
        steps_per_epoch: Steps of an epoch; 0 if they are unknown.
    """
    if field == "learning_rate":
        return None if value is None else float(value)
    if field not in INTERVALS:
        return None
    try:
        interval = parse_interval(field, str(value))
    except PlanError:  # checkpoints by themselves: auto
        return None
    if interval.unit == "steps":
        return float(interval.count)
    return float(interval.count * steps_per_epoch) if interval.unit == "epochs" and steps_per_epoch else None
