"""Devices in lines: histories in a row."""

import math
from collections.abc import Sequence

import pytest

from accel_tui.formatting.text import sparkline
from accel_tui.widgets.device_lines import history


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


def test_a_history_is_an_area_in_dark_colours_of_the_load() -> None:
    above, below = history([None, 0, 30, 50, 80, 100], 7, rows=2)
    assert (above.plain, below.plain) == ("     ▅█", "  ▁▅███")
    colours = ["$load-0", "$load-1-area", "$load-2-area", "$load-4-area"]
    assert [str(span.style) for span in above.spans] == [str(span.style) for span in below.spans] == colours
    assert [row.plain for row in history([100.0] * 3, 2)] == ["██"]
