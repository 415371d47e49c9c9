"""Values that hold until the next one, over the steps of a run."""

import numpy as np
import pytest

from accel_tui.run_state.curve import CAPACITY, RecordedCurve
from accel_tui.run_state.device_curves import ForwardFilledCurve, forward_fill


def ended(times: list[float]) -> RecordedCurve:
    return RecordedCurve().extend(np.array(times))


def trace(*values: tuple[float, float]) -> ForwardFilledCurve:
    one = ForwardFilledCurve()
    for time, value in values:
        one.extend([time], [value])
    return one


def test_a_step_has_what_was_read_while_it_was_taken_or_else_before_it() -> None:
    curve = trace((100.5, 10.0), (103.4, 20.0), (103.6, 30.0)).by_step(ended([101, 102, 103, 104, 105, 106]))
    assert curve.means.tolist() == [10, 10, 10, 25, 30, 30]
    assert curve.at(3) == (20.0, 30.0, 25.0)
    assert (curve.end_step, curve.first_step, curve.gaps, curve.last_value) == (6, 0, 0, 30.0)


def test_what_was_read_before_training_is_the_first_steps_and_what_after_it_nobodys() -> None:
    curve = trace((10.0, 1.0), (50.0, 2.0), (999.0, 3.0)).by_step(ended([101, 102, 103]))
    assert curve.means.tolist() == [2, 2, 2]


def test_steps_before_the_first_reading_have_none_and_are_no_gaps() -> None:
    curve = trace((102.5, 7.0)).by_step(ended([101, 102, 103, 104]))
    assert (curve.first_step, curve.means.tolist(), curve.gaps) == (2, [7, 7], 0)
    assert curve.at(1) is None


def test_without_steps_or_readings_there_is_no_curve() -> None:
    assert (
        ForwardFilledCurve().by_step(ended([1, 2])).end_step == trace((1.0, 2.0)).by_step(RecordedCurve()).end_step == 0
    )


@pytest.mark.parametrize("resumed", [False, True])
def test_long_traces_and_runs_keep_their_extremes_in_their_places(*, resumed: bool) -> None:
    steps = 3 * CAPACITY
    times = np.arange(steps, dtype=float) / 10
    times[steps // 2 :] += 1e6 if resumed else 0
    one = ForwardFilledCurve()
    values = np.zeros(steps)
    values[[100, steps // 2 + 5000]] = -5.0, 9.0
    for first in range(0, steps, 1000):
        one.extend(times[first : first + 1000] - 0.05, values[first : first + 1000])
    assert len(one) <= CAPACITY
    curve = one.by_step(ended(times.tolist()))
    assert (np.nanmin(curve.low), np.nanmax(curve.high)) == (-5.0, 9.0)
    assert int(np.nanargmin(curve.low)) * curve.width == pytest.approx(100, abs=2 * curve.width)
    assert int(np.nanargmax(curve.high)) * curve.width == pytest.approx(steps // 2 + 5000, abs=2 * curve.width)
    assert curve.gaps == 0


def test_a_bucket_with_a_missing_value_has_neither_range_nor_mean() -> None:
    values = np.array([1.0, np.nan, 2.0])
    curve = forward_fill(np.array([0.0, 1.0, 2.0]), values, values, values, 4, 2)
    assert [curve.low.tolist(), curve.high.tolist(), curve.means.tolist()] == [
        pytest.approx([np.nan, 2.0], nan_ok=True)
    ] * 3
