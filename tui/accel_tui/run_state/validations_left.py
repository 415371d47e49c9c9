"""How many validations a run still has, by its plan, and about how long one takes before the first has ended."""

from collections.abc import Mapping
from typing import Any

from accel_engine.errors import PlanError
from accel_engine.events import ModelBuilt
from accel_engine.plan import DEFAULTS
from accel_engine.plan.interval import parse_interval

FORWARD_SHARE = 1 / 3
"""Share of a training step that its forward pass takes: gradients need twice its operations."""


def validations_left(
    plan: Mapping[str, Any], epochs: int, steps: int, done: tuple[int, int], seconds: float
) -> float | None:
    """Count the validations to the end, one that is due now included; ``None`` if the plan says nothing of it.

    Args:
        plan: The plan's values.
        epochs: Epochs of the run.
        steps: Steps of the run.
        done: Epochs completed and steps taken at the last validation; zeros before the first.
        seconds: Of the training steps that are left.
    """
    when = plan.get("validation")
    if when not in ("epoch", "end", "off"):
        return None
    if when == "off" or done[1] >= steps:
        return 0
    if when == "end":
        return 1
    try:
        every = parse_interval("validation_every", str(plan.get("validation_every", DEFAULTS["validation_every"])))
    except PlanError:
        return None
    match every.unit:
        case "epochs":
            return -(-epochs // every.count) - done[0] // every.count
        case "steps":
            return -(-steps // every.count) - done[1] // every.count
    return seconds // (60 * every.count) + 1


def assumed_seconds(built: ModelBuilt, rate: float) -> float:
    """About how long a validation takes by the speed of training; 0 if its examples are unknown.

    Args:
        built: The size of the data.
        rate: Steps per second.
    """
    batch = built.global_batch or 0
    return FORWARD_SHARE * (built.validation_examples or 0) / (batch * rate) if batch else 0.0
