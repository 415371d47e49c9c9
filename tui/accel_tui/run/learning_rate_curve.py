"""The learning rate over the steps of a run."""

import math
from dataclasses import replace

from accel_engine.run.schema import LEARNING_RATE
from accel_tui.run.curve import Curve
from accel_tui.run.forward_fill import constant_between
from accel_tui.run.state import Points, RunState


def has_rate(state: RunState) -> bool:
    """Whether anything is known of it."""
    return bool(state.rates) or LEARNING_RATE in state.curves


def rate_curve(state: RunState) -> Curve:
    """The learning rate of each step: as it was recorded; before that, as an older program told its changes."""
    recorded = state.curves.get(LEARNING_RATE)
    if recorded is None:
        return constant_between(state.rates, state.step, state.throughput.width)
    return _with_beginning(recorded, state.rates)


def rate_detail(state: RunState) -> Curve:
    """The same more finely, of the part that somebody looks at closely; nothing where there is none."""
    recorded = state.details.get(LEARNING_RATE)
    return Curve() if recorded is None else _with_beginning(recorded, state.rates)


def latest_rate(state: RunState, curve: Curve | None) -> float | None:
    """The learning rate of the latest step, or the one that was set for the next.

    Args:
        state: The run's, with all steps taken.
        curve: What was recorded of it at each step.
    """
    if curve is None or math.isnan(curve.last) or (state.rates and state.rates[-1][0] >= state.step):
        return state.learning_rate
    return float(f"{curve.last:.7g}")  # float32, so no more digits than it has


def _with_beginning(recorded: Curve, rates: Points) -> Curve:
    """A curve with the rates that were told in the place of its first buckets, as far as these have no value."""
    unknown = int((recorded.finite > 0).argmax()) if recorded.finite.any() else 0
    if not unknown:
        return recorded
    told = constant_between(rates, recorded.first + unknown * recorded.width, recorded.width)
    if not told.count:
        return recorded
    parts = {name: getattr(recorded, name).copy() for name in ("low", "high", "total", "finite")}
    apart = (told.first - recorded.first) // recorded.width
    for name, values in parts.items():
        values[max(apart, 0) : unknown] = getattr(told, name)[max(-apart, 0) :]
    return replace(recorded, **parts)
