"""The moving average, against a plain one."""

import math

import numpy as np
import pytest

from accel_engine.run.store.buckets import downsample
from accel_tui.run_state.curve import RecordedCurve
from accel_tui.widgets.chart.chart_view import SMOOTHINGS
from accel_tui.widgets.chart.draw_series import smoothed, smoothed_values


def plain(values: list[float], weight: float) -> list[float]:
    """One value after the other."""
    found, average, count = [], 0.0, 0
    for value in values:
        if math.isnan(value):
            found.append(math.nan)
            continue
        average = weight * average + (1 - weight) * value
        count += 1
        found.append(average / (1 - weight**count))
    return found


@pytest.mark.parametrize("weight", [0.0, 0.6, 0.9, 0.98, 0.999])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 63, 64, 65, 1000, 8192])
def test_it_is_the_plain_average(count: int, weight: float) -> None:
    values = np.random.default_rng(count).normal(3, 2, count)
    np.testing.assert_allclose(smoothed_values(values, weight), plain(values.tolist(), weight), rtol=1e-9)


def test_gaps_stay_gaps_and_are_left_out() -> None:
    values = np.array([math.nan, 1.0, math.nan, 3.0, 4.0, math.nan])
    np.testing.assert_allclose(smoothed_values(values, 0.9), plain(values.tolist(), 0.9))
    assert np.isnan(smoothed_values(np.array([math.nan, math.nan]), 0.9)).all()


def test_a_constant_stays_what_it_is_from_the_first_value_on() -> None:
    for weight in SMOOTHINGS:
        np.testing.assert_allclose(smoothed_values(np.full(5000, 7.25), weight), 7.25)


def test_a_curve_of_single_steps_is_smoothed_step_by_step() -> None:
    values = np.array([4.0, 2.0, math.nan, 1.0, math.inf, 3.0], np.float32)
    curve = smoothed(RecordedCurve().extend(values), 0.6)
    np.testing.assert_allclose(curve.means, plain([4, 2, math.nan, 1, math.nan, 3], 0.6))
    assert (curve.end_step, curve.width, curve.gaps, curve.last_value) == (6, 1, 2, 3.0)


def test_a_curve_of_buckets_is_smoothed_by_their_means() -> None:
    values = np.random.default_rng(1).normal(0, 1, 1000).astype(np.float32)
    curve = RecordedCurve.of(downsample(values, 8), 0, 1000, 8)
    again = smoothed(curve, 0.9)
    np.testing.assert_allclose(again.means, plain(curve.means.tolist(), 0.9))
    np.testing.assert_array_equal(again.low, again.high)
