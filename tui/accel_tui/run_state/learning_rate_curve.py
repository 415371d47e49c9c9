"""The learning rate over the steps of a run."""

import math

from accel_engine.run.store.buckets import Statistics
from accel_engine.run.store.series_names import LEARNING_RATE, rounded_rate
from accel_tui.run_state.curve import Curve
from accel_tui.run_state.forward_fill import constant_between
from accel_tui.run_state.state import Points, RunState


def has_learning_rate(state: RunState) -> bool:
    """Whether any learning rate is known."""
    return bool(state.learning_rates) or LEARNING_RATE in state.curves


def learning_rate_curve(state: RunState) -> Curve:
    """The learning rate of each step as recorded; before that, from the changes in events of older versions."""
    recorded = state.curves.get(LEARNING_RATE)
    if recorded is None:
        return constant_between(state.learning_rates, state.step, state.throughput.width)
    return _with_beginning(recorded, state.learning_rates)


def visible_learning_rate_curve(state: RunState) -> Curve:
    """The same at full resolution, of the visible steps; empty if not loaded."""
    recorded = state.visible_series.get(LEARNING_RATE)
    return Curve() if recorded is None else _with_beginning(recorded, state.learning_rates)


def latest_learning_rate(state: RunState, curve: Curve | None) -> float | None:
    """The learning rate of the latest step, or the one set for the next.

    Args:
        state: The run's state, with all steps.
        curve: The recorded learning rate of each step.
    """
    if (
        curve is None
        or math.isnan(curve.last_value)
        or (state.learning_rates and state.learning_rates[-1][0] >= state.step)
    ):
        return state.learning_rate
    return rounded_rate(curve.last_value)


def _with_beginning(recorded: Curve, rates: Points) -> Curve:
    """The recorded curve, with its leading gap filled from the changes in events."""
    unknown = int((recorded.finite > 0).argmax()) if recorded.finite.any() else 0
    if not unknown:
        return recorded
    filled = constant_between(rates, recorded.first_step + unknown * recorded.width, recorded.width)
    if not filled.end_step:
        return recorded
    apart = (filled.first_step - recorded.first_step) // recorded.width
    parts = Statistics(*(values.copy() for values in recorded.buckets))
    for values, known in zip(parts, filled.buckets, strict=True):
        values[max(apart, 0) : unknown] = known[max(-apart, 0) :]
    return recorded.with_buckets(parts)
