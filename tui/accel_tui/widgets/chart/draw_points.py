"""Draws the points of a series over the curves: one by one, or as the line that joins them."""

import math

import numpy as np

from accel_tui.widgets.chart import raster
from accel_tui.widgets.chart.axes import Axis
from accel_tui.widgets.chart.cell_frame import COLOURS, STYLE_ID, Frame
from accel_tui.widgets.chart.edges import mark_edges
from accel_tui.widgets.chart.series import Series

POINT = "●"
"""How one is drawn."""

_CELLS_A_POINT = 3  # where validations come closer than this, they are joined to a line
_CURVES = [STYLE_ID[colour] for colour in COLOURS]
_DASH = 2  # cells


def draw_points(plot: Frame, x: Axis, y: Axis, series: Series) -> None:
    """Mark points; where there is no room for so many, draw the line that joins them.

    Beyond the plot there are marks at its edge in their place.

    Args:
        plot: What has the curves already; drawn on.
        x: Range of steps.
        y: Range of values.
        series: What has points.
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
    """Whether points are too many to be told apart in so many columns."""
    return sum(x.low <= step <= x.high for step, _ in series.points) * _CELLS_A_POINT > width


def paint(plot: Frame, patterns: raster.Patterns, style: str) -> None:
    """Put braille over what is there, where it has dots."""
    mask = patterns > 0
    plot.characters[mask] = patterns[mask] + np.uint32(raster.BLANK)
    plot.styles[mask] = STYLE_ID[style]


def _paint_dashed(plot: Frame, patterns: raster.Patterns, style: str) -> None:
    """The same, but cells where a curve is already keep its dots, and by turns its colour."""
    both = (patterns > 0) & (plot.characters > raster.BLANK) & np.isin(plot.styles, _CURVES)
    patterns = np.where(both, patterns | (plot.characters - raster.BLANK).astype(np.uint8), patterns)
    before = plot.styles.copy()
    paint(plot, patterns, style)
    both &= np.arange(both.shape[1]) // _DASH % 2 == 1
    plot.styles[both] = before[both]
