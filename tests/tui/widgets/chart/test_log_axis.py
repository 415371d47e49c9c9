"""Logarithmic axes."""

import math
from itertools import pairwise

import numpy as np
import pytest

from accel_tui.widgets.chart.axes import Axis, LogAxis
from accel_tui.widgets.chart.value_axis import log_axis, max_ticks


def test_equal_ratios_are_equally_far_apart_and_what_is_not_positive_is_nowhere() -> None:
    fractions = LogAxis(0.01, 100).fraction(np.array([0.01, 1, 100, 1000, 0, -3, math.nan]))
    np.testing.assert_allclose(fractions, [0, 0.5, 1, 1.25, math.nan, math.nan, math.nan])


@pytest.mark.parametrize(
    ("low", "high", "ends"),
    [
        (0.013, 4.2, (0.01, 5)),
        (1, 1000, (1, 1000)),
        (3e-9, 7e20, (2e-9, 1e21)),
        (2.31, 2.38, (2.31, 2.38)),
        (1.5, 2.9, (1.4, 3)),
        (math.nan, math.nan, (0.1, 1)),
    ],
)
def test_ends_are_round_and_near(low: float, high: float, ends: tuple[float, float]) -> None:
    axis = log_axis(low, high)
    assert (axis.low, axis.high) == pytest.approx(ends)


@pytest.mark.parametrize("value", [1e-30, 0.5, 7.0, 3e8])
def test_one_value_alone_has_an_axis_around_it(value: float) -> None:
    axis = log_axis(value, value)
    assert 0 < axis.low < value < axis.high


def test_it_grows_at_once_and_shrinks_seldom() -> None:
    wide = log_axis(0.001, 10)
    assert log_axis(0.01, 5, previous=wide) == wide
    assert log_axis(0.5, 5, previous=wide) == LogAxis(0.5, 5)
    assert log_axis(0.001, 30, previous=wide) == LogAxis(0.001, 50)
    assert log_axis(0.01, 5, previous=Axis(0, 10)) == LogAxis(0.01, 5)


def test_fixed_ends_hold_where_they_have_a_logarithm() -> None:
    assert log_axis(0.2, 0.8, (0.0, 1.0)) == LogAxis(0.2, 1)


@pytest.mark.parametrize(
    ("axis", "most", "labels"),
    [
        (LogAxis(0.001, 10), 6, ["0.001", "0.01", "0.1", "1", "10"]),
        (LogAxis(0.001, 10), 3, ["0.001", "0.1", "10"]),
        (LogAxis(0.1, 5), 6, ["0.1", "0.2", "0.5", "1", "2", "5"]),
        (LogAxis(1e-7, 1e-5), 4, ["1e-7", "1e-6", "1e-5"]),
        (LogAxis(2.3, 2.4), 6, ["2.3", "2.32", "2.34", "2.36", "2.38", "2.4"]),
        (LogAxis(1, 1e9), 4, ["1", "1k", "1M", "1G"]),
        (LogAxis(1, 10), 0, []),
    ],
)
def test_ticks_are_round(axis: LogAxis, most: int, labels: list[str]) -> None:
    ticks = axis.ticks(most)
    assert len(ticks) <= most
    assert axis.labels(ticks) == labels


@pytest.mark.parametrize("rows", [*range(3, 50, 3)])
def test_powers_of_ten_are_on_rows_equally_far_apart(rows: int) -> None:
    rng = np.random.default_rng(rows)
    for _ in range(60):
        low = float(10.0 ** rng.uniform(-12, 6))
        high = float(low * 10.0 ** rng.uniform(1, 12))
        axis = log_axis(low, high, rows=rows)
        assert axis.low * (1 - 1e-9) <= low < high <= axis.high * (1 + 1e-9)
        found = axis.ticks_on_rows(rows, max_ticks(rows))
        places = {row for _, row in found}
        assert len(places) == len(found)
        assert places <= set(range(rows + 1))
        powers = [row for tick, row in found if abs(math.log10(tick) - round(math.log10(tick))) < 1e-9]
        assert len(powers) >= 1
        assert len({above - below for below, above in pairwise(powers)}) <= 1
        for tick, row in found:  # the digits between them are on the nearest row
            assert (1 - float(axis.fraction(np.array([tick]))[0])) * rows == pytest.approx(row, abs=0.5)


def test_no_value_is_beyond_an_axis_whatever_it_is_to_reach() -> None:
    axis = log_axis(0.2, 250, (0.0, 100.0), rows=9)
    assert axis.low <= 0.2
    assert axis.high >= 250
