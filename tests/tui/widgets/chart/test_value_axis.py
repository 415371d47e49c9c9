"""Value axes that hold still, with ticks on rows of cells, equally far apart."""

import math
from itertools import pairwise

import numpy as np
import pytest

from accel_tui.run_state.curve import RecordedCurve
from accel_tui.widgets.chart.axes import Axis, labels
from accel_tui.widgets.chart.chart_view import ChartOptions, ChartSeries, ChartView
from accel_tui.widgets.chart.value_axis import axis_of, max_ticks, value_axis

NONE = math.nan


@pytest.mark.parametrize("rows", [*range(3, 60)])
def test_ticks_are_equally_many_rows_apart_at_every_height_and_range(rows: int) -> None:
    rng = np.random.default_rng(rows)
    for _ in range(60):
        low, high = np.sort(rng.standard_normal(2) * 10.0 ** rng.integers(-12, 18, 2)).tolist()
        axis = value_axis(low, high, rows=rows)
        hair = 1e-6 * (axis.high - axis.low)
        assert axis.low - hair <= low < high <= axis.high + hair
        found = axis.ticks_on_rows(rows, max_ticks(rows))
        ticks, places = [tick for tick, _ in found], [row for _, row in found]
        assert 2 <= len(ticks) <= max_ticks(rows)
        assert len(ticks) > 2 or rows < 6
        assert len({above - below for below, above in pairwise(places)}) == 1
        assert len(set(labels(ticks))) == len(ticks)
        for tick, row in found:  # and each is where its value is
            assert (axis.high - tick) / (axis.high - axis.low) * rows == pytest.approx(row, abs=1e-3)


@pytest.mark.parametrize("rows", [*range(3, 60)])
def test_most_of_the_plot_is_used(rows: int) -> None:
    rng = np.random.default_rng(rows)
    for _ in range(60):
        high = float(10.0 ** rng.uniform(-6, 6))
        axis = value_axis(0, high, rows=rows)
        assert axis.low == 0
        assert axis.high <= high * (2 if rows < 6 else 1.7)


@pytest.mark.parametrize("rows", [0, 3, 4, 5, 8, 13, 40])
@pytest.mark.parametrize("seed", range(20))
def test_no_two_labels_are_equal(seed: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    low, high = np.sort(rng.standard_normal(2) * 10.0 ** rng.integers(-12, 18, 2))
    axis = value_axis(float(low), float(high), rows=rows)
    ticks = [tick for tick, _ in axis.ticks_on_rows(rows, max_ticks(rows))] if rows else [axis.low, axis.high]
    assert len(set(labels(ticks))) == len(ticks)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.02, 2.31, Axis(0, 2.5)),
        (1.9, 2.31, Axis(1.9, 2.35)),
        (0.5, 2.31, Axis(0, 2.5)),
        (-2.31, -0.5, Axis(-2.5, 0)),
        (-5, 7, Axis(-6, 8)),
        (0, 0, Axis(0, 1)),
        (0.5, 0.5, Axis(0, 1)),
        (-3, -3, Axis(-6, 0)),
        (NONE, NONE, Axis(0, 1)),
        (-3.4e38, 3.4e38, Axis(-4e38, 4e38)),
    ],
)
def test_values_get_room_on_a_round_axis(low: float, high: float, expected: Axis) -> None:
    axis = value_axis(low, high)
    assert (axis.low, axis.high) == pytest.approx((expected.low, expected.high))


def test_the_value_axis_grows_at_once_and_shrinks_seldom() -> None:
    axis = value_axis(0, 4)
    assert value_axis(0, 3, previous=axis) == axis
    assert value_axis(0, 5, previous=axis) == Axis(0, 5)
    assert value_axis(0, 1, previous=axis) == Axis(0, 1)


def test_an_axis_ends_at_a_limit_that_it_did_not_have_until_now() -> None:
    until_now = value_axis(0.0, 1.2, rows=3)
    assert until_now.high > 1
    assert value_axis(0.3, 1.0, previous=until_now, rows=3, limits=(0, 1)) == Axis(0, 1)
    assert value_axis(0.3, 1.2, previous=until_now, rows=3, limits=(0, 1)) == until_now


@pytest.mark.parametrize("rows", range(2, 14))
def test_an_axis_of_loads_begins_at_0_also_where_all_are_high(rows: int) -> None:
    axis = value_axis(99.5, 100.0, (0, 100), rows=rows, limits=(0, 100))
    assert axis.low == 0
    assert (100.0, round((axis.high - 100) * rows / axis.high)) in axis.ticks_on_rows(rows, 8)
    assert axis.high <= 100 * rows / (rows - 1), "at most one empty row"


def test_an_accuracy_on_a_logarithmic_axis_has_ticks_by_its_distance_to_one() -> None:
    values = np.array([0.05, 0.5, 0.9, 0.97, 0.99, 0.996, 1.0])
    one = (ChartSeries("accuracy", RecordedCurve().extend(values)),)
    axis = axis_of(one, None, ChartOptions(log=True, clip=False), rows=12, limits=(0.0, 1.0))
    ticks = axis.ticks_on_rows(12, 6)
    assert axis.labels([tick for tick, _ in ticks]) == ["0", "0.9", "0.99"]
    for tick, row in ticks:
        assert axis.fraction(np.array([tick]))[0] == pytest.approx(1 - row / 12)
    assert axis.fraction(np.array([1.0]))[0] == pytest.approx(1), "an accuracy of 1 is at the end"
    assert np.all(np.diff(axis.fraction(values)) >= 0)
    assert axis.at(axis.fraction(np.array([0.97]))[0]) == pytest.approx(0.97)
    assert ChartView(80, 16, Axis(0, 7), axis).description == "log of 1-x"


def test_an_axis_reaches_what_it_is_to_reach() -> None:
    assert value_axis(0.3, 0.4, (0, 1)) == Axis(0, 1)
    assert value_axis(math.nan, math.nan, (0, 100)) == Axis(0, 100)
    assert value_axis(3, 7, (0, 100), rows=10) == Axis(0, 100)


def test_no_value_is_beyond_an_axis_whatever_it_is_to_reach() -> None:
    assert value_axis(0.3, 1.7, (0, 1)).high >= 1.7
    assert value_axis(-0.3, 0.7, (0, 1)).low <= -0.3


@pytest.mark.parametrize("most", [0, 1, 2, 3, 7, 10, 25, 1000])
def test_ticks_of_counts_are_whole(most: int) -> None:
    curve = RecordedCurve().extend(np.array([0.0, float(most)]))
    for rows in range(3, 40):
        axis = axis_of((ChartSeries("errors", curve),), None, ChartOptions(), (0.0, None), None, rows, whole=True)
        ticks = [tick for tick, _ in axis.ticks_on_rows(rows, max_ticks(rows))]
        assert len(ticks) >= 2
        assert axis.high >= most
        assert not any(tick % 1 for tick in (*ticks, *axis.ticks(6)))
