"""Drawings of cells as shapes, for files: dots, blocks and lines as a terminal shows them, and texts."""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import cast

import numpy as np
import numpy.typing as npt

from accel_tui.widgets.chart import raster
from accel_tui.widgets.chart.cell_frame import Frame, style_and_tint
from accel_tui.widgets.chart.cell_looks import CellLook
from accel_tui.widgets.chart.figure import TEXT, Area, ChartFigure, Ink, Label, Shape

_WIDE, _HIGH = 8, 16
"""Points of a cell. What covers neighbouring points in one style becomes one shape."""

_LIGHT, _HEAVY = 1, 3
"""Half the width of a line, in points."""

_WORDS = r"[^ ]+(?: [^ ]+)*"
"""A text; two blanks or more end it."""

_DISC, _DIAMONDS = "●", "★◆"

_Points = npt.NDArray[np.bool_]


def figure_of_frame(title: str, frame: Frame, styles: tuple[str, ...], looks: Mapping[str, CellLook]) -> ChartFigure:
    """Draw the cells of a frame; tints are left out.

    Args:
        title: What it shows, for screen readers.
        frame: The cells.
        styles: The names of their styles, by index.
        looks: How these look.
    """
    columns = frame.characters.shape[1]
    written = np.flatnonzero((frame.characters != ord(" ")).any(axis=1))
    rows = int(written[-1]) + 1 if len(written) else 1  # without the empty rows at the end
    points = {number: np.zeros((rows * _HIGH, columns * _WIDE), np.bool_) for number in np.unique(frame.styles)}
    labels: list[Shape] = []
    for row in range(rows):
        at = 0
        for text, name in frame.runs(row, names=styles):
            for word in re.finditer(_WORDS, text):
                letters = word.group()
                for place, character in enumerate(letters, at + word.start()):
                    if (cell := _points_of(character)) is not None:
                        area = points[frame.styles[row, place]]
                        area[row * _HIGH : (row + 1) * _HIGH, place * _WIDE : (place + 1) * _WIDE] = cell
                        letters = letters.replace(character, " ")
                ink = _ink(looks[style_and_tint(name)[0]])
                for part in re.finditer(_WORDS, letters):
                    corner = (at + word.start() + part.start()) * _WIDE, row * _HIGH + TEXT
                    labels.append(Label(corner, part.group(), ink, is_bold=name == "title"))
            at += len(text)
    shapes = [
        _area(corners, looks[style_and_tint(styles[number])[0]])
        for number, area in points.items()
        for corners in _rectangles(area)
    ]
    return ChartFigure(columns * _WIDE, rows * _HIGH, title, (*shapes, *labels))


def _area(corners: tuple[tuple[float, float], ...], look: CellLook) -> Area:
    return Area(corners, _ink(look), 1.0 if look.colour == "foreground" else look.share)


def _ink(look: CellLook) -> Ink:
    return "grid" if look.colour == "foreground" else cast(Ink, look.colour)


def _points_of(character: str) -> _Points | None:
    """The points of a cell that a character covers; ``None`` for a letter."""
    code = ord(character)
    cell = np.zeros((_HIGH, _WIDE), np.bool_)
    if raster.BLANK <= code <= raster.BLANK + 0xFF:
        for number, (x, y) in enumerate(((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3))):
            if code - raster.BLANK >> number & 1:
                cell[4 * y : 4 * y + 3, 4 * x : 4 * x + 3] = True
    elif 0x2581 <= code <= 0x2588:  # the lower eighths, up to the whole cell
        cell[_HIGH - (code - 0x2580) * _HIGH // 8 :] = True
    elif 0x2589 <= code <= 0x258F:  # the left eighths, from seven down to one
        cell[:, : (0x2590 - code) * _WIDE // 8] = True
    elif 0x2591 <= code <= 0x2593:  # the shades, which stand for colours
        cell[:] = True
    elif character in (*_DISC, *_DIAMONDS):
        down, right = np.abs(np.indices(cell.shape) - np.array([_HIGH - 1, _WIDE - 1])[:, None, None] / 2)
        cell = down + right <= _WIDE / 2 if character in _DIAMONDS else np.hypot(down, right) <= _WIDE / 2 - 0.5
    elif 0x2500 <= code <= 0x257F:
        words = unicodedata.name(character).split()
        half = _HEAVY if "HEAVY" in words else _LIGHT
        middle, centre = slice(_HIGH // 2 - half, _HIGH // 2 + half), slice(_WIDE // 2 - half, _WIDE // 2 + half)
        cell[middle, : _WIDE // 2] = "LEFT" in words or "HORIZONTAL" in words
        cell[middle, _WIDE // 2 :] = "RIGHT" in words or "HORIZONTAL" in words
        cell[: _HIGH // 2, centre] |= "UP" in words or "VERTICAL" in words
        cell[_HIGH // 2 :, centre] |= "DOWN" in words or "VERTICAL" in words
    else:
        return None
    return cell


def _rectangles(points: _Points) -> Iterator[tuple[tuple[float, float], ...]]:
    """The corners of rectangles that cover the points: what is joined in a row, and equal in the rows below."""
    open_: dict[tuple[int, int], int] = {}
    for y in range(len(points) + 1):
        steps = np.diff(points[y].astype(np.int8), prepend=0, append=0) if y < len(points) else np.zeros(1, np.int8)
        here = set(zip(np.flatnonzero(steps > 0).tolist(), np.flatnonzero(steps < 0).tolist(), strict=True))
        for left, right in open_.keys() - here:
            top = open_.pop((left, right))
            yield (left, top), (right, top), (right, y), (left, y)
        open_ |= dict.fromkeys(here - open_.keys(), y)
