"""Writes the last values at the right of a chart, and marks the best one."""

import math
from collections.abc import Iterator
from itertools import accumulate

import numpy as np
from textual.geometry import Region

from accel_tui.widgets.chart import raster
from accel_tui.widgets.chart.cell_frame import Frame
from accel_tui.widgets.chart.chart_view import VALIDATION_END, ChartSeries, ChartView
from accel_tui.widgets.chart.cursor import column_of

BEST = "★"
"""Sign of the best value."""

_ABOVE, _BELOW = "▲", "▼"


def draw_values(frame: Frame, view: ChartView, plot: Region) -> None:
    """Mark the best value, and write the last value of each series at the right, at its height.

    Of several values at one height, the lower ones are moved down, or all of them up where there is no room below.

    Args:
        frame: The chart with its curves; drawn on.
        view: The chart's inputs.
        plot: The rectangle of the plot, whose last row is the axis.
    """
    if view.best and (cell := _cell(view, plot, *view.best)):
        mark = frame.part(*cell, 1, 1)
        mark.characters[:] = ord(BEST)
        mark.restyle(np.ones((1, 1), bool), "title")
    if not view.has_ends:
        return
    labels = sorted(_labels(view, plot), key=lambda label: (label[0][0], -label[0][1]))
    last = plot.bottom - 2
    rows = list(accumulate((y for (y, _), _, _ in labels), lambda above, row: max(row, above + 1)))
    for at in range(len(rows) - 1, -1, -1):  # those for which there is no room below go up
        rows[at] = last = min(rows[at], last)
        last -= 1
    for row, (_, text, series) in zip(rows, labels, strict=True):
        if row >= plot.y:
            frame.write(plot.right + 1, row, text, series.style)


def _labels(view: ChartView, plot: Region) -> Iterator[tuple[tuple[int, float], str, ChartSeries]]:
    """The labels at the ends of lines: row and value, text, and series.

    A line with a name that ends above or below the plot has an arrow.
    """
    for series in view.series:
        step, value = _end(series, is_any=view.has_end_names)
        if cell := _cell(view, plot, step, value):
            name = f"{series.name} " * view.has_end_names
            role = VALIDATION_END * (view.has_validation_ends and series.is_validation)
            yield (cell[1], series.latest), f"{name}{view.value(series.latest)}{role}", series
        elif view.has_end_names and math.isfinite(value):
            is_above = float(view.y.fraction(np.array([value]))[0]) > 1
            row, arrow = (plot.y, _ABOVE) if is_above else (plot.bottom - 2, _BELOW)
            yield (row, series.latest), f"{arrow}{series.name} {view.value(series.latest)}", series


def _end(series: ChartSeries, *, is_any: bool) -> tuple[float, float]:
    """The last step and its value; NaN if there is none, or if the header has another value, such as a mean.

    Args:
        series: The series.
        is_any: Whether the header may have another value.
    """
    ends = [
        *series.points[-1:],
        *([(series.curve.end_step - 1.0, series.curve.last_value)] * bool(series.curve.end_step)),
    ]
    step, value = ends[-1] if ends else (math.nan, math.nan)
    return step, value if is_any or value == series.latest else math.nan


def _cell(view: ChartView, plot: Region, step: float, value: float) -> tuple[int, int] | None:
    """The cell of a value in the frame; ``None`` if it is outside of the plot."""
    if math.isnan(step) or math.isnan(value):
        return None
    column, up = column_of(view, step), float(view.y.fraction(np.array([value]))[0])
    if column is None or not -raster.EDGE <= up <= 1 + raster.EDGE:
        return None
    row = int(raster.dot_rows(np.array([up]), plot.height)[0]) // raster.DOTS
    return column, plot.y + row
