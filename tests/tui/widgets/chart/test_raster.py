"""Braille, drawn small."""

import math

import numpy as np
import pytest

from accel_tui.widgets.chart import raster

GAP = math.nan


def drawn(low: list[float], high: list[float], rows: int) -> list[str]:
    patterns = raster.trace(np.array(low), np.array(high), rows)
    return ["".join(chr(raster.BLANK + int(cell)) if cell else " " for cell in row) for row in patterns]


def test_every_dot_has_its_place() -> None:
    for place, character in enumerate("⠁⠈⠂⠐⠄⠠⡀⢀"):
        row, column = divmod(place, 2)
        upper, lower = np.zeros(2, np.int16), np.full(2, -1, np.int16)
        upper[column] = lower[column] = row
        assert chr(raster.BLANK + int(raster.fill_columns(upper, lower, 1)[0, 0])) == character


def test_a_slope() -> None:
    rising = [step / 15 for step in range(16)]
    assert drawn(rising, rising, 3) == [
        "     ⢀⡠⠔",
        " ⢀⡠⠔⠊⠁  ",
        "⠊⠁      ",
    ]


def test_neighbours_far_apart_are_joined() -> None:
    zigzag = [0.0, 1.0] * 4
    assert drawn(zigzag, zigzag, 2) == [
        "⢰⢰⢰⢰",
        "⠃⠃⠃⠃",
    ]


def test_a_gap_stays_open() -> None:
    broken = [0, 0.3, GAP, GAP, 0.8, GAP, 1, 1]
    assert drawn(broken, broken, 1) == ["⡠ ⠂⠉"]


def test_a_band_is_filled() -> None:
    assert drawn([0, 0.2, 0.3, 0.3, 0.2, 0], [0.5, 0.7, 1, 1, 0.8, 0.5], 3) == [
        "⢀⣶⡀",
        "⣾⣿⣷",
        "⠃ ⠘",
    ]


def test_what_is_outside_is_not_drawn_and_a_line_ends_at_the_edge() -> None:
    far = [-5, 0.5, 5, 0.5]
    assert drawn(far, far, 2) == [
        "⢸⢸",
        "⢸ ",
    ]
    assert drawn([1.5] * 8, [1.5] * 8, 1) == ["    "]
    assert drawn([-0.2] * 8, [-0.2] * 8, 1) == ["    "]
    crossing = [1.5] * 4 + [-0.2] * 4
    assert drawn(crossing, crossing, 1) == [" ⠘⡄ "]


def test_the_end_of_an_axis_may_be_missed_by_a_rounding() -> None:
    ends = [1 + 1e-9, 1 - 1e-9, 1e-9, -1e-9]
    assert raster.dot_rows(np.array(ends), 3).tolist() == [1, 1, 9, 9]
    assert raster.dot_rows(np.array([1.01, -0.01, 1e30, -1e30]), 3).tolist() == [-1, 12, -16000, 16000]


@pytest.mark.parametrize("seed", range(20))
def test_a_line_has_no_holes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    line = rng.random(60)
    line[rng.random(60) < 0.1] = GAP
    patterns = raster.trace(line, line, 6)
    dots = np.zeros((24, 60), dtype=bool)
    for y, pair in enumerate(((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))):
        for x, weight in enumerate(pair):
            dots[y::4, x::2] = patterns & weight > 0
    for column in range(60):
        rows = np.flatnonzero(dots[:, column])
        assert rows.size == 0 if np.isnan(line[column]) else np.all(np.diff(rows) == 1)
        if column and rows.size and (before := np.flatnonzero(dots[:, column - 1])).size:
            assert rows[0] <= before[-1] + 1
            assert before[0] <= rows[-1] + 1
