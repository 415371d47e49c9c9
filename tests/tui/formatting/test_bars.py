"""Bars and intervals as text."""

import math

import pytest

from accel_tui.appearance.glyphs import to_ascii
from accel_tui.formatting.bars import bar, interval


@pytest.mark.parametrize(
    ("share", "drawn"),
    [(0.0, ""), (1.0, "━━━━"), (2.0, "━━━━"), (0.5, "━━"), (0.6, "━━╸"), (1e-6, "╸"), (math.nan, ""), (-1.0, "")],
)
def test_a_bar_is_as_long_as_its_share(share: float, drawn: str) -> None:
    assert bar(share, 4) == drawn


def test_what_is_left_of_a_bar_is_filled() -> None:
    assert bar(0.5, 4, rest="·") == "━━··"


def test_an_interval_has_its_ends_and_its_value_at_their_places() -> None:
    assert interval(0.2, 0.5, 0.9, (0.0, 1.0), 11) == "  ├──●───┤ "
    assert to_ascii(interval(0.2, 0.5, 0.9, (0.0, 1.0), 11)) == "  +--*---+ "


def test_an_interval_without_ends_is_a_point_and_one_without_a_value_is_blank() -> None:
    assert interval(math.nan, 1.0, math.nan, (0.0, 1.0), 5) == "    ●"
    assert interval(0.0, math.nan, 1.0, (0.0, 1.0), 5) == "     "


def test_a_scale_of_one_value_has_it_in_the_middle() -> None:
    assert interval(2.0, 2.0, 2.0, (2.0, 2.0), 5) == "  ●  "
