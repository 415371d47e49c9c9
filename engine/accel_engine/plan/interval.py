"""Intervals, durations and numbers of steps in a plan: ``2 epochs``, ``10 minutes``, ``2h``, ``50%``."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from accel_engine.errors import PlanError

UNITS = ("epochs", "steps", "minutes")
"""Units of an interval."""

MAX_CHECKPOINT_TIME_SHARE = 0.02
"""The share of a run's time that checkpoints after epochs may take; after short epochs some are skipped."""

ONE_CYCLE_WARMUP = 0.3
"""Share of the steps in which a one-cycle schedule rises, unless the plan says otherwise; as in fastai and PyTorch."""

_INTERVAL = re.compile(r"(\d+)\s*(epoch|step|minute)s?", re.IGNORECASE)
_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)h)?\s*(?:(\d+(?:\.\d+)?)m(?:in)?)?\s*(?:(\d+(?:\.\d+)?)s)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Interval:
    """How often something is done."""

    count: int
    """Number of units."""
    unit: str
    """One of :data:`UNITS`."""


def parse_interval(name: str, text: str) -> Interval:
    """Parse an interval.

    Args:
        name: The plan's field.
        text: Such as ``2 epochs``.

    Raises:
        PlanError: The text is not an interval.
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
        PlanError: The text is not a duration above 0.
    """
    found = _DURATION.fullmatch(text.strip())
    hours, minutes, seconds = (float(part or 0) for part in found.groups()) if found else (0.0, 0.0, 0.0)
    total = 3600 * hours + 60 * minutes + seconds
    if not total:
        raise PlanError(name, text, _duration_advice(text.strip(), is_duration=found is not None))
    return total


def _duration_advice(text: str, *, is_duration: bool) -> str:
    """The message for a text that is not a duration, or a duration of 0."""
    if text and is_duration:
        return "must be above 0"
    if text.isdecimal():
        return f"needs a unit: {text}s, {text}m or {text}h"
    return "must be a duration above 0, e.g. 45s, 30m, 2h or 1h30m"


def _parse_drop(text: str) -> tuple[float, bool]:
    """Parse one of ``rate_drops``; returns its number, and whether it is a share of all steps.

    Raises:
        ValueError: The text is neither a positive number of steps nor a share between 0 and 100 %.
    """
    text = text.strip()
    if text.endswith("%"):
        share = float(text[:-1]) / 100
        if not 0 < share < 1:
            raise ValueError(text)
        return share, True
    if int(text) < 1:
        raise ValueError(text)
    return int(text), False


def check_drops(name: str, values: Sequence[str]) -> None:
    """Check steps or shares of all steps that increase.

    Raises:
        PlanError: A value is not a step or share, or the values do not increase.
    """
    try:
        drops = [_parse_drop(each) for each in values]
    except ValueError:
        reason = "must be steps or shares of all steps, e.g. 1000,2000 or 50%,75%"
        raise PlanError(name, values, reason) from None
    if not drops or len({share for _, share in drops}) > 1 or drops != sorted(set(drops)):
        raise PlanError(name, values, "must be steps, or shares of all steps, that increase")


def check_step_numbers(name: str, values: Sequence[str]) -> None:
    """Check numbers of steps.

    Raises:
        PlanError: A value is not a number.
    """
    if not all(each.strip().isdecimal() for each in values):
        raise PlanError(name, values, "must be numbers of steps, counted from 0, e.g. 120,348")


def check_share_or_steps(name: str, value: float) -> None:
    """Check a share below 1, or a whole number of steps.

    Raises:
        PlanError: The value is 1 or more, and not a whole number.
    """
    if value >= 1 and value != int(value):
        raise PlanError(name, value, "must be a whole number of steps, or a share of all steps below 100%")


def warmup_steps(plan: Any, total_steps: int) -> int:
    """The steps of a plan's warm-up, in a run of ``total_steps``."""
    share = ONE_CYCLE_WARMUP if plan.schedule == "one-cycle" and not plan.warmup else plan.warmup
    return round(share * total_steps) if share < 1 else int(share)


def drop_steps(plan: Any, total_steps: int) -> list[int]:
    """The steps at which a plan's learning rate drops, in a run of ``total_steps``."""
    drops = map(_parse_drop, plan.rate_drops)
    return [round(number * total_steps if is_share else number) for number, is_share in drops]
