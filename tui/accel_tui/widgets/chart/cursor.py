"""The cursor of a chart: a line at a step, and the values there."""

import bisect
import math

import numpy as np

from accel_tui.widgets.chart.background import plot_region
from accel_tui.widgets.chart.cell_frame import STYLE_ID, Frame
from accel_tui.widgets.chart.chart_view import ChartSeries, ChartView
from accel_tui.widgets.chart.raster import BLANK


def step_at(view: ChartView, x: int) -> float | None:
    """The step in the middle of a cell column; ``None`` outside the plot."""
    plot = plot_region(view)
    if not plot or x < plot.x:
        return None
    return view.x.low + (x - plot.x + 0.5) / plot.width * (view.x.high - view.x.low)


def column_of(view: ChartView, step: float) -> int | None:
    """The cell column of a step; ``None`` if it is not visible."""
    plot = plot_region(view)
    share = (step - view.x.low) / (view.x.high - view.x.low)
    return plot.x + min(int(share * plot.width), plot.width - 1) if plot and 0 <= share <= 1 else None


def with_cursor(frame: Frame, view: ChartView, step: int) -> Frame:
    """The frame with a line at a step, and the values there in its header."""
    column = column_of(view, step)
    if column is None:
        return frame
    plot = plot_region(view)
    frame = frame.copy()
    has_axis = plot.bottom < view.rows
    for y in range(plot.y, plot.bottom):
        # Curves stay visible where the line crosses them.
        if not BLANK < frame.characters[y, column] <= BLANK + 0xFF:
            frame.write(column, y, "┴" if has_axis and y == plot.bottom - 1 else "│", "label")
    if has_axis:
        label = _place(view, step)
        _write_over(frame, plot.bottom, min(max(column - len(label) // 2, 0), view.columns - len(label)), label)
    _head(frame, view, step)
    return frame


def value_at(view: ChartView, series: ChartSeries, step: int) -> str:
    """The value of a series at a step, or its range within a bucket; empty if it has none."""
    if series.curve.end_step:
        found = series.curve_in(view.x.low, view.x.high).at(step)
        if found is None:
            return ""
        low, high = view.value(found[0]), view.value(found[1])
        return low if low == high else f"{low} to {high}"
    index = bisect.bisect_right(series.points, (step, math.inf))
    return view.value(series.points[index - 1][1]) if index else ""


def _place(view: ChartView, step: int) -> str:
    """The step on the x-axis, as its labels count."""
    if view.scale is None:
        return f"{step:,}"
    at = float(view.scale.at(np.array([step + 1.0]))[0])
    return "" if math.isnan(at) else view.scale.write(round(at, 2), 1.0)


def _write_over(frame: Frame, y: int, x: int, text: str) -> None:
    """Write into a row of labels, and remove the labels that it overlaps."""
    row = frame.text(y)
    start, end = max(x - 1, 0), min(x + len(text), len(row) - 1)
    while start and row[start - 1] != " " != row[start]:
        start -= 1
    while end + 1 < len(row) and row[end] != " " != row[end + 1]:
        end += 1
    frame.write(start, y, " " * (end + 1 - start), "label")
    frame.write(x, y, text, "title")


def _head(frame: Frame, view: ChartView, step: int) -> None:
    frame.characters[0] = ord(" ")
    frame.styles[0] = STYLE_ID["title"]
    frame.write(0, 0, view.title, "title")
    named = len(view.series) > 1
    entries = [(series, value) for series in view.series if (value := value_at(view, series, step))]
    if len(view.title) + sum(len(series.name) + len(value) + 6 for series, value in entries) > view.columns:
        named = len(view.series) > 2  # two series are distinguished by colour
    x = len(view.title) + 1
    for index, (series, value) in enumerate(entries):
        left = len(entries) - index
        length = 2 + (len(series.name) + 1) * named + len(value)
        if x + length + (len(f"  +{left - 1}") if left > 1 else 0) > view.columns and x + 2 <= view.columns:
            frame.write(x, 0, f"+{left}", "note")
            return
        sign = "─ " if series.curve.end_step else "━ "
        pieces = ((sign, series.style), (f"{series.name} " if named else "", "note"), (f"{value}  ", "title"))
        for text, style in pieces:
            frame.write(x, 0, text, style)
            x += len(text)
    if not entries:
        frame.write(x, 0, "nothing there", "note")
