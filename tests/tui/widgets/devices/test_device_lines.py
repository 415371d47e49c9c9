"""Devices in lines: histories in a row."""

import math
from collections.abc import Sequence

import pytest

from accel_tui.formatting.text import sparkline


@pytest.mark.parametrize(
    ("values", "columns", "text"),
    [
        ([0, 25, 50, None, 100, math.nan, 200, -5], 10, "  ▁▃▅ █ █▁"),
        ([10, 50, 100], 2, "▅█"),
        ([], 3, "   "),
        ([50], 0, ""),
    ],
)
def test_the_newest_value_is_at_the_right_and_gaps_are_spaces(
    values: Sequence[float | None], columns: int, text: str
) -> None:
    assert sparkline(values, columns) == text


def test_the_range_can_be_another() -> None:
    assert sparkline([1, 2, 3, 4], 4, low=1, high=4) == "▁▃▆█"
