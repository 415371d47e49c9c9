"""Writes the last values at the right of a chart, and marks the best one."""

import math

import numpy as np
from textual.geometry import Region

from accel_tui.widgets.chart import raster
from accel_tui.widgets.chart.cell_frame import Frame
from accel_tui.widgets.chart.chart_view import ChartSeries, ChartView
from accel_tui.widgets.chart.cursor import column_of

BEST = "★"
"""Sign of the best value."""


def draw_values(frame: Frame, view: ChartView, plot: Region) -> None:
    """Mark the best value, and write the last value of each series at the right, at its height.

    Of several values at one height, the lower ones are moved to the next free row.

    Args:
        frame: The chart with its curves; drawn on.
        view: The chart's inputs.
        plot: The rectangle of the plot, whose last row is the axis.
    """
    if view.best and (cell := _cell(view, plot, *view.best)):
        mark = frame.part(*cell, 1, 1)
        mark.characters[:] = ord(BEST)
        mark.restyle(np.ones((1, 1), bool), "title")
    if not view.end_width:
        return
    found = ((_cell(view, plot, *_end(each)), each) for each in view.series)
    ends = [(cell, each) for cell, each in found if cell]
    free = set(range(plot.y, plot.bottom - 1))
    for (_, y), series in sorted(ends, key=lambda end: (end[0][1], -_end(end[1])[1])):
        row = min(free, key=lambda row: (abs(row - y), -row), default=None)
        if row is None:
            return
        free.discard(row)
        frame.write(plot.right + 1, row, view.value(_end(series)[1]), series.style)


def _end(series: ChartSeries) -> tuple[float, float]:
    """The last step and its value; NaN if there is none, or if the header has another value, such as a mean."""
    ends = [
        *series.points[-1:],
        *([(series.curve.end_step - 1.0, series.curve.last_value)] * bool(series.curve.end_step)),
    ]
    step, value = ends[-1] if ends else (math.nan, math.nan)
    return step, value if value == series.latest else math.nan


def _cell(view: ChartView, plot: Region, step: float, value: float) -> tuple[int, int] | None:
    """The cell of a value in the frame; ``None`` if it is outside of the plot."""
    if math.isnan(step) or math.isnan(value):
        return None
    column, up = column_of(view, step), float(view.y.fraction(np.array([value]))[0])
    if column is None or not -raster.EDGE <= up <= 1 + raster.EDGE:
        return None
    row = int(raster.dot_rows(np.array([up]), plot.height)[0]) // raster.DOTS
    return column, plot.y + row
