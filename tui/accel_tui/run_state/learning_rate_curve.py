"""The learning rate over the steps of a run."""

import math

from accel_engine.run.store.series_names import LEARNING_RATE, rounded_rate
from accel_tui.run_state.curve import RecordedCurve
from accel_tui.run_state.state import RunState


def has_learning_rate(state: RunState) -> bool:
    """Whether any learning rate is known."""
    return bool(state.learning_rates) or LEARNING_RATE in state.curves


def learning_rate_curve(state: RunState) -> RecordedCurve:
    """The learning rate of each step; empty if it was not recorded."""
    return state.curves.get(LEARNING_RATE, RecordedCurve())


def visible_learning_rate_curve(state: RunState) -> RecordedCurve:
    """The same at full resolution, of the visible steps; empty if not loaded."""
    return state.visible_series.get(LEARNING_RATE, RecordedCurve())


def latest_learning_rate(state: RunState, curve: RecordedCurve | None) -> float | None:
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
