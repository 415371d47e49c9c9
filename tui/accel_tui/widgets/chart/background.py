"""The background of a chart: axes, labels, grid and marks."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from textual.geometry import Region

from accel_tui.widgets.chart.axes import Axis, labels
from accel_tui.widgets.chart.cell_frame import Frame
from accel_tui.widgets.chart.chart_view import ChartView
from accel_tui.widgets.chart.draw_marks import draw_marks
from accel_tui.widgets.chart.value_axis import most_ticks

_FOOTED = 6  # rows from which a chart has an axis and labels below its plot


@dataclass(frozen=True, slots=True, eq=False)
class _Scaffold:
    """The parts of a background that change only with axes and size. Cached and shared, so never drawn on.

    Attributes:
        frame: Axes, labels and grid.
        labels: Width of the longest value label.
        gutter: Columns left of the plot.
        height: Rows of the plot, which begins in the second row.
        foot: Whether there is an axis with labels below it.
    """

    frame: Frame
    labels: int
    gutter: int
    height: int
    foot: bool


def draw_background(view: ChartView) -> Frame:
    """Draw the background. What does not fit is left out: step labels first, then value labels, then the plot."""
    scaffold = _scaffold_of(view)
    frame = scaffold.frame.copy()
    width = view.columns - scaffold.gutter
    if scaffold.foot and width > 0:
        if view.scale:
            name = view.scale.name if scaffold.gutter else ""
            _ticks(frame, view.scale.ticks(view.x, width), scaffold.height + 1, scaffold.gutter, name)
        draw_marks(frame, view.marks, view.x, (scaffold.gutter, width, scaffold.height + 1))
    return frame


def plot_of(view: ChartView) -> Region:
    """The rectangle of the plot; empty if there is no room."""
    scaffold = _scaffold_of(view)
    return Region(scaffold.gutter, 1, max(0, view.columns - scaffold.gutter), scaffold.height)


def rows_of(rows: int) -> int:
    """Rows between the labels at the ends of the value axis; 0 if only the ends have labels."""
    height, foot = _heights(rows)
    return height if foot else 0


def labels_of(view: ChartView) -> int:
    """Width of the longest value label, whether it fits or not."""
    return _scaffold_of(view).labels


def _scaffold_of(view: ChartView) -> _Scaffold:
    return _scaffold(view.columns, view.rows, view.x, view.y, view.room, steps=view.scale is None)


@lru_cache(maxsize=32)
def _scaffold(columns: int, rows: int, x: Axis, y: Axis, room: int, *, steps: bool) -> _Scaffold:
    frame = Frame.blank(columns, rows)
    height, foot = _heights(rows)
    # Without an axis below the plot, the lower end has its label in the last row.
    found = y.ticks_on_rows(height, most_ticks(height)) if foot else [(y.low, height - 1), (y.high, 0)]
    texts = y.labels([value for value, _ in found])
    longest = max(map(len, texts), default=0)
    gutter = max(room, longest) + 2
    if columns < gutter + 12:
        gutter = 0
    if gutter and height:
        _value_axis(frame, height, gutter, [(row, text) for (_, row), text in zip(found, texts, strict=True)])
    if foot:
        _foot(frame, height + 1, gutter)
        if steps:
            ticks = x.ticks(max(2, (columns - gutter) // 8))
            places = (x.fraction(np.array(ticks)) * (columns - gutter)).astype(np.int64).tolist()
            _ticks(frame, zip(places, labels(ticks), strict=True), height + 1, gutter)
    return _Scaffold(frame, longest, gutter, height, foot)


def _heights(rows: int) -> tuple[int, bool]:
    """Rows of the plot in a chart of so many rows, and whether there is an axis below it."""
    foot = rows >= _FOOTED
    return max(0, rows - 1 - 2 * foot), foot


def _value_axis(frame: Frame, height: int, gutter: int, ticks: Iterable[tuple[int, str]]) -> None:
    """Write value labels at their rows, and grid lines across the plot."""
    for y in range(1, height + 1):
        frame.write(gutter - 1, y, "│", "axis")
    for row, text in ticks:
        frame.write(gutter - 2 - len(text), row + 1, text, "label")
        frame.write(gutter - 1, row + 1, "┤", "axis")
        if row < height:
            frame.write(gutter, row + 1, "┈" * frame.characters.shape[1], "grid")


def _foot(frame: Frame, y: int, gutter: int) -> None:
    frame.write(gutter, y, "─" * (frame.characters.shape[1] - gutter), "axis")
    if gutter:
        frame.write(gutter - 1, y, "└", "axis")


def _ticks(frame: Frame, ticks: Iterable[tuple[int, str]], y: int, gutter: int, name: str = "") -> None:
    """Write as many step labels as do not touch, and the axis title left of them."""
    columns = frame.characters.shape[1]
    frame.write(0, y + 1, name, "note")
    free = least = len(name) + 1 if name else 0
    for place, text in ticks:
        x = gutter + min(place, columns - gutter - 1)
        start = max(least, min(x - len(text) // 2, columns - len(text)))
        if start >= free:
            frame.write(x, y, "┬", "axis")
            frame.write(start, y + 1, text, "label")
            free = start + len(text) + 1
