"""Draws the points of a series, such as validations, over the curves."""

import math

import numpy as np

from accel_tui.widgets.chart import raster
from accel_tui.widgets.chart.axes import Axis
from accel_tui.widgets.chart.cell_frame import COLOURS, STYLE_ID, Frame
from accel_tui.widgets.chart.edges import mark_edges
from accel_tui.widgets.chart.series import Series

POINT = "●"
"""Sign of a point."""

_CELLS_A_POINT = 3  # closer points are joined to a line
_CURVES = [STYLE_ID[colour] for colour in COLOURS]
_DASH = 2  # cells


def draw_points(plot: Frame, x: Axis, y: Axis, series: Series) -> None:
    """Draw points, or a line that joins them if they are too close. Those beyond the plot are marked at its edge.

    Args:
        plot: The plot with its curves; drawn on.
        x: Range of steps.
        y: Range of values.
        series: The series.
    """
    if not series.points:
        return
    height, width = plot.characters.shape
    steps, values = np.array(series.points, dtype=np.float64).T
    across, up = x.fraction(steps), y.fraction(np.where(np.isfinite(values), values, np.nan))
    shown = (across >= 0) & (across <= 1)
    across, up = across[shown], up[shown]
    if are_joined(x, series, width):
        dots = (np.arange(2 * width) + 0.5) / (2 * width)
        line = np.interp(dots, across, up, left=math.nan, right=math.nan)
        _paint_dashed(plot, raster.trace(line, line, height), series.style)
    else:
        line = np.full(2 * width, math.nan)
        columns = np.minimum((across * width).astype(np.int64), width - 1)
        inside = (up >= -raster.EDGE) & (up <= 1 + raster.EDGE)
        rows = raster.dot_rows(up[inside], height) // 4
        plot.characters[rows, columns[inside]] = ord(POINT)
        plot.styles[rows, columns[inside]] = STYLE_ID[series.style]
    low, high = line.copy(), line
    if not shown.any():
        return
    place = np.minimum((across * 2 * width).astype(np.int64), 2 * width - 1)
    np.fmin.at(low, place, up)
    np.fmax.at(high, place, up)
    mark_edges(plot, low, high, series.style)


def are_joined(x: Axis, series: Series, width: int) -> bool:
    """Whether points are too close to be drawn one by one."""
    return sum(x.low <= step <= x.high for step, _ in series.points) * _CELLS_A_POINT > width


def paint(plot: Frame, patterns: raster.Patterns, style: str) -> None:
    """Draw braille patterns where they have dots."""
    mask = patterns > 0
    plot.characters[mask] = patterns[mask] + np.uint32(raster.BLANK)
    plot.styles[mask] = STYLE_ID[style]


def _paint_dashed(plot: Frame, patterns: raster.Patterns, style: str) -> None:
    """Draw braille patterns; cells with a curve keep its dots, and alternate in colour."""
    both = (patterns > 0) & (plot.characters > raster.BLANK) & np.isin(plot.styles, _CURVES)
    patterns = np.where(both, patterns | (plot.characters - raster.BLANK).astype(np.uint8), patterns)
    before = plot.styles.copy()
    paint(plot, patterns, style)
    both &= np.arange(both.shape[1]) // _DASH % 2 == 1
    plot.styles[both] = before[both]
