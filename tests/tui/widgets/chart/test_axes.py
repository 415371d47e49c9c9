"""Ranges that hold still, and ticks that read well."""

import math

import numpy as np
import pytest

from accel_tui.widgets.chart.axes import Axis, WholeAxis, labels, significant, step_axis

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
        (WholeAxis(0, 2), 6, ["0", "1", "2"]),
        (WholeAxis(0, 30), 4, ["0", "10", "20", "30"]),
        (Axis(0, 1), 1, ["0"]),
        (Axis(0, 1), 0, []),
    ],
)
def test_ticks_are_few_round_and_brief(axis: Axis, most: int, expected: list[str]) -> None:
    assert labels(axis.ticks(most)) == expected


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
    ("ticks", "texts"),
    [
        ([0, 2.5, 5, 7.5], ["0", "2.5", "5", "7.5"]),
        ([0, 0.25, 0.5], ["0", "0.25", "0.5"]),
        ([0.3, 1.3], ["0.3", "1.3"]),
        ([1.9, 2.35], ["1.9", "2.35"]),
        ([0, 2500, 5000], ["0", "2.5k", "5k"]),
        ([0, 2.5e-6, 5e-6], ["0", "2.5e-6", "5e-6"]),
        ([12.3456], ["12.3"]),
    ],
)
def test_a_label_says_the_number_that_it_is_at(ticks: list[float], texts: list[str]) -> None:
    assert labels(ticks) == texts


@pytest.mark.parametrize(
    ("axis", "rows", "places"),
    [
        (Axis(0, 1), 10, {"1": 0, "0.8": 2, "0.6": 4, "0.4": 6, "0.2": 8, "0": 10}),
        (Axis(0, 2), 6, {"2": 0, "1": 3, "0": 6}),
        (Axis(0, 1), 3, {"1": 0, "0": 3}),
        (Axis(0, 3.5), 7, {"3": 1, "2": 3, "1": 5, "0": 7}),
        (Axis(1.9, 2.4), 10, {"2.4": 0, "2.3": 2, "2.2": 4, "2.1": 6, "2": 8, "1.9": 10}),
        (Axis(0, 1), 7, {"1": 0, "0": 7}),
        (Axis(-1, 2), 6, {"2": 0, "1": 2, "0": 4, "-1": 6}),
    ],
)
def test_ticks_are_on_rows_equally_far_apart(axis: Axis, rows: int, places: dict[str, int]) -> None:
    ticks = axis.ticks_on_rows(rows, 6)
    assert dict(zip(labels([tick for tick, _ in ticks]), [row for _, row in ticks], strict=True)) == places


def test_a_fraction_is_a_place_on_the_axis() -> None:
    np.testing.assert_array_equal(Axis(-1, 3).fraction(np.array([-1, 0, 3, 7, NONE])), [0, 0.25, 1, 2, NONE])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.21341, "0.2134"),
        (1.895e9, "1.895G"),
        (NONE, "-"),
    ],
)
def test_a_value_is_written_as_everywhere(value: float, text: str) -> None:
    assert significant(value) == text
