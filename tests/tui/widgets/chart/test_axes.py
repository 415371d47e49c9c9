"""Ranges that hold still, and ticks that read well."""

import math

import numpy as np
import pytest

from accel_tui.widgets.chart.axes import Axis, labels, significant, step_axis, value_axis

NONE = math.nan


@pytest.mark.parametrize(
    ("axis", "most", "expected"),
    [
        (Axis(0, 1), 6, ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (Axis(0, 1), 3, ["0", "0.5", "1"]),
        (Axis(0, 2.5), 6, ["0", "0.5", "1", "1.5", "2", "2.5"]),
        (Axis(0.05, 0.32), 6, ["0.05", "0.1", "0.15", "0.2", "0.25", "0.3"]),
        (Axis(0, 2000), 6, ["0", "500", "1k", "1.5k", "2k"]),
        (Axis(0, 3e6), 4, ["0", "1M", "2M", "3M"]),
        (Axis(0, 1e-3), 6, ["0", "0.0002", "0.0004", "0.0006", "0.0008", "0.001"]),
        (Axis(0, 1e-5), 6, ["0", "2e-6", "4e-6", "6e-6", "8e-6", "1e-5"]),
        (Axis(-6, 8), 4, ["-5", "0", "5"]),
        (Axis(1e20, 3e20), 5, ["1e20", "1.5e20", "2e20", "2.5e20", "3e20"]),
        (Axis(1_000_000, 1_000_010), 6, ["1000000", "1000002", "1000004", "1000006", "1000008", "1000010"]),
        (Axis(0, 1), 1, ["0"]),
        (Axis(0, 1), 0, []),
    ],
)
def test_ticks_are_few_round_and_brief(axis: Axis, most: int, expected: list[str]) -> None:
    assert labels(axis.ticks(most)) == expected


@pytest.mark.parametrize("seed", range(200))
def test_no_two_labels_are_equal(seed: int) -> None:
    rng = np.random.default_rng(seed)
    low, high = np.sort(rng.standard_normal(2) * 10.0 ** rng.integers(-12, 18, 2))
    axis = value_axis(float(low), float(high))
    ticks = axis.ticks(8)
    assert 2 <= len(ticks) <= 8
    assert len(set(labels(ticks))) == len(ticks)
    hair = 1e-8 * (axis.high - axis.low)
    assert axis.low - hair <= low < high <= axis.high + hair


@pytest.mark.parametrize(
    ("count", "end", "high"),
    [
        (0, None, 10),
        (7, None, 10),
        (11, None, 15),
        (16, None, 20),
        (201, None, 300),
        (301, None, 400),
        (401, None, 600),
        (999, None, 1000),
        (7, 8, 8),
        (90, 94, 94),
        (90, 940, 100),
        (70, 50, 80),
        (0, 0, 10),
        (0, 5, 5),
    ],
)
def test_the_step_axis_grows_in_jumps_and_no_further_than_the_run(count: int, end: int | None, high: float) -> None:
    assert step_axis(count, end) == Axis(0, high)


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


def test_fixed_ends_stay_fixed() -> None:
    assert value_axis(0.3, 0.4, (0, 1)) == Axis(0, 1)
    assert value_axis(0.3, 1.7, (0, 1)) == Axis(0, 1)
    assert value_axis(0.3, 1.7, (0, None), Axis(-1, 3)).low == 0
    assert value_axis(0.3, 1.7, (5, None)).high > 5


def test_a_fraction_is_a_place_on_the_axis() -> None:
    np.testing.assert_array_equal(Axis(-1, 3).fraction(np.array([-1, 0, 3, 7, NONE])), [0, 0.25, 1, 2, NONE])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.21341, "0.2134"),
        (0.25, "0.2500"),
        (2.303, "2.303"),
        (-0.5, "-0.5000"),
        (123.45, "123.5"),
        (1234.4, "1234"),
        (12345, "12.35k"),
        (3e6, "3000k"),
        (3.2e7, "32.00M"),
        (1e-5, "1.000e-5"),
        (1e20, "1.000e20"),
        (NONE, "-"),
    ],
)
def test_the_latest_value_has_about_four_digits(value: float, text: str) -> None:
    assert significant(value) == text
