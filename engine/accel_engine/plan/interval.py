"""Intervals and durations in a plan: ``2 epochs``, ``500 steps``, ``10 minutes``, ``2h``."""

import re
from dataclasses import dataclass

from accel_engine.errors import PlanError

UNITS = ("epochs", "steps", "minutes")
"""Units of an interval."""

MAX_CHECKPOINT_TIME_SHARE = 0.02
"""The share of a run's time that checkpoints after epochs may take; after short epochs some are skipped."""

_INTERVAL = re.compile(r"(\d+)\s*(epoch|step|minute)s?", re.IGNORECASE)
_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)h)?\s*(?:(\d+(?:\.\d+)?)m(?:in)?)?\s*(?:(\d+(?:\.\d+)?)s)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Interval:
    """How often something is done.

    Attributes:
        count: Number of units.
        unit: One of :data:`UNITS`.
    """

    count: int
    unit: str


def parse_interval(name: str, text: str) -> Interval:
    """Parse an interval.

    Args:
        name: The plan's field.
        text: Such as ``2 epochs``.

    Raises:
        PlanError: It is none.
    """
    found = _INTERVAL.fullmatch(text.strip())
    if not found or not int(found[1]):
        raise PlanError(name, text, "must be a number of epochs, steps or minutes, e.g. 2 epochs or 500 steps")
    return Interval(int(found[1]), f"{found[2].lower()}s")


def parse_duration(name: str, text: str) -> float:
    """Parse a duration; returns seconds.

    Args:
        name: The plan's field.
        text: Such as ``90m``, ``2h`` or ``1h30m``.

    Raises:
        PlanError: It is none.
    """
    found = _DURATION.fullmatch(text.strip())
    hours, minutes, seconds = (float(part or 0) for part in found.groups()) if found else (0.0, 0.0, 0.0)
    total = 3600 * hours + 60 * minutes + seconds
    if not total:
        raise PlanError(name, text, _duration_advice(text.strip(), is_duration=found is not None))
    return total


def _duration_advice(text: str, *, is_duration: bool) -> str:
    """What would be a duration instead of a text that is none, or of none."""
    if text and is_duration:
        return "must be above 0"
    if text.isdecimal():
        return f"needs a unit: {text}s, {text}m or {text}h"
    return "must be a duration above 0, e.g. 45s, 30m, 2h or 1h30m"
