"""Labels by epoch and by time, below curves that are spaced by step."""

import math

import numpy as np
import pytest

from accel_engine.run.store.buckets import downsample
from accel_tui.run_state.curve import RecordedCurve
from accel_tui.widgets.chart.axes import Axis
from accel_tui.widgets.chart.scale import epochs, seconds

BEGUN = 1.7e9


def ended(times: np.ndarray, width: int = 1) -> RecordedCurve:
    return RecordedCurve.of(downsample(BEGUN + times, width), 0, len(times), width)


def test_epochs_are_where_they_ended_and_go_on_as_they_will() -> None:
    scale = epochs([(100, 1), (150, 2), (400, 4)], 50)
    np.testing.assert_allclose(scale.at(np.array([0, 50, 100, 125, 400, 425, 500])), [0, 0.5, 1, 1.5, 4, 4.5, 6])
    np.testing.assert_allclose(epochs([(100, 1)], None).at(np.array([50, 101])), [0.5, math.nan])


def test_epochs_are_written_as_whole_as_there_is_room_for() -> None:
    scale = epochs([], 100)
    assert [text for _, text in scale.ticks(Axis(0, 1000), 60)] == ["0", "2", "4", "6", "8", "10"]
    assert scale.ticks(Axis(0, 1000), 100)[1] == (10, "1")
    assert [text for _, text in scale.ticks(Axis(230, 330), 60)] == ["2.4", "2.6", "2.8", "3", "3.2"]
    assert [text for _, text in scale.ticks(Axis(0, 100_000), 30)] == ["0", "500", "1000"]


@pytest.mark.parametrize("width", [1, 16])
def test_time_is_since_the_first_step_began(width: int) -> None:
    scale = seconds(ended(0.5 * np.arange(1, 1001), width))
    np.testing.assert_allclose(scale.at(np.array([0, 1, 500, 1000])), [0, 0.5, 250, 500], atol=1e-6)
    assert math.isnan(scale.at(np.array([1001.0]))[0])
    assert scale.ticks(Axis(0, 1000), 50) == [(0, "0:00"), (12, "2:00"), (24, "4:00"), (36, "6:00"), (48, "8:00")]


def test_a_pause_takes_no_room_and_labels_on_both_sides_of_it_are_right() -> None:
    times = np.arange(1.0, 1001.0)
    times[500:] += 36_000
    scale = seconds(ended(times))
    ticks = dict(scale.ticks(Axis(0, 1000), 50))
    assert [text for cell, text in ticks.items() if cell < 24] == ["0:00", "5:00"]
    assert [text for cell, text in ticks.items() if cell > 25] == ["10:10:00", "10:15:00"]
    for cell, text in ticks.items():
        hours, minutes, second = ([0, *map(int, text.split(":"))])[-3:]
        shown = 3600 * hours + 60 * minutes + second
        low, high = scale.at(np.array([20.0 * cell, 20.0 * (cell + 1)]))
        assert low - 1e-3 <= shown <= high + 1e-3


def test_short_times_have_fractions() -> None:
    scale = seconds(ended(0.001 * np.arange(1, 1001)))
    assert [text for _, text in scale.ticks(Axis(0, 1000), 50)] == ["0.0s", "0.2s", "0.4s", "0.6s", "0.8s", "1.0s"]


def test_where_nothing_is_known_nothing_is_said() -> None:
    assert seconds(RecordedCurve()).ticks(Axis(0, 10), 40) == []
    assert seconds(ended(np.array([math.nan, math.nan]))).ticks(Axis(0, 10), 40) == []
    assert epochs([], None).ticks(Axis(0, 10), 40) == []
