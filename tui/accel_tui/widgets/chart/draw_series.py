"""Draws the series of a chart on its plot: curves with their bands, edges, and points such as validations."""

import math
from dataclasses import replace

import numpy as np

from accel_tui.run_state.curve import Curve, Floats
from accel_tui.widgets.chart import dots, raster
from accel_tui.widgets.chart.axes import Axis
from accel_tui.widgets.chart.background import value_axis_rows
from accel_tui.widgets.chart.cell_frame import STYLE_ID, Frame
from accel_tui.widgets.chart.chart_view import ChartView, Series
from accel_tui.widgets.chart.smoothing import smoothed

POINT = "●"
"""Sign of a point, where the terminal shows no dots."""

_ABOVE, _BELOW = "▲", "▼"  # by the edge of the plot
_CELLS_A_POINT = 3  # closer points are joined to a line
_DASH = np.array([[-1.0], [0.0], [1.0]])  # dot columns of a point, beside its own
_NO_SIGNS = tuple(map(ord, " ┈┊─┬"))  # characters of the background that may be hidden
_SPARSE = np.uint8(0b10010101)  # every other dot, so that the mean stands out from the band


def draw_series(plot: Frame, view: ChartView) -> None:
    """Draw all curves, and above them all points.

    Args:
        plot: The plot with its grid; drawn on.
        view: The chart's inputs.
    """
    axis = plot.part(0, plot.characters.shape[0] - 1, plot.characters.shape[1], 1)
    before, signs = axis.copy(), ~np.isin(axis.characters, _NO_SIGNS)
    drawn = [(series, _draw_curve(plot, view, series)) for series in view.series if series.curve.end_step]
    inside = plot if plot.characters.shape[0] < 2 or not value_axis_rows(view.rows) else _above_axis(plot)
    for series, (low, high) in drawn:  # on top of all curves, so that no series hides a mark
        _mark_edges(inside, low, high, series.style)
    for series in view.series:
        if series.points:
            _mark_edges(inside, *_draw_points(plot, view, series), series.style)
    axis.characters[signs], axis.styles[signs] = before.characters[signs], before.styles[signs]


def are_joined(x: Axis, series: Series, width: int) -> bool:
    """Whether points are drawn as a line: those without a curve, and those that are too close to be apart."""
    seen = sum(x.low <= step <= x.high for step, _ in series.points)
    return seen > 1 and (not series.curve.end_step or seen * _CELLS_A_POINT > width)


def _draw_curve(plot: Frame, view: ChartView, series: Series) -> tuple[Floats, Floats]:
    """Draw the mean of a curve, and behind it a band between its extremes.

    Of a smoothed curve the unsmoothed mean is behind too.

    Returns:
        Minimum and maximum of each dot column, as fractions of the height.
    """
    height, width = plot.characters.shape
    curve = series.curve_in(view.x.low, view.x.high)
    low, high, mean = _resampled(curve, view, 2 * width)
    lows, highs = [low, mean], [high, mean]
    if view.options.smoothing:
        front = _resampled(smoothed(curve, view.options.smoothing), view, 2 * width)[2]
        lows, highs = [*lows, front], [*highs, front]
    band, line, *fronts = raster.trace(np.array(lows), np.array(highs), height)
    band &= _SPARSE
    if fronts:
        band |= line
    _paint(plot, band, f"{series.style}-band")
    _paint(plot, fronts[0] if fronts else line, series.style)
    return np.fmin.reduce(lows), np.fmax.reduce(highs)


def _resampled(curve: Curve, view: ChartView, columns: int) -> Floats:
    """Minimum, maximum and mean of the dot columns, as fractions of the height."""
    if view.is_log:
        curve = _positive(curve)
    found = view.y.fraction(curve.columns(view.x.low, view.x.high, columns))
    if view.is_log:
        found[0, np.isnan(found[0]) & ~np.isnan(found[1])] = 0  # to the lower edge, where there is no logarithm
    return found


def _positive(curve: Curve) -> Curve:
    """The curve without buckets that have no logarithm; low is 0 for buckets with some values without one."""
    if not (curve.low <= 0).any():
        return curve
    known, positive_total = curve.high > 0, curve.total > 0
    return replace(
        curve,
        low=np.where(known, np.maximum(curve.low, 0), np.nan),
        high=np.where(known, curve.high, np.nan),
        total=np.where(positive_total, curve.total, 0),
        finite=np.where(positive_total, curve.finite, 0),
    )


def _draw_points(plot: Frame, view: ChartView, series: Series) -> tuple[Floats, Floats]:
    """Draw points in the cells that they need, twice as thick as curves: each as a dash, or joined if too close.

    Returns:
        Minimum and maximum of each dot column, as fractions of the height.
    """
    height, width = plot.characters.shape
    steps, values = np.array(series.points, dtype=np.float64).T
    across, up = view.x.fraction(steps), view.y.fraction(np.where(np.isfinite(values), values, np.nan))
    shown = (across >= 0) & (across <= 1)
    across, up = across[shown], up[shown]
    if are_joined(view.x, series, width):
        middles = (np.arange(2 * width) + 0.5) / (2 * width)
        line = np.interp(middles, across, up, left=math.nan, right=math.nan)
        patterns = raster.trace(line, line, height)
    else:
        line = np.full(2 * width, math.nan)
        beside = _DASH / (2 * width) if view.has_dots else np.zeros((1, 1))
        patterns = dots.scatter((across + beside).ravel(), np.tile(up, len(beside)), width, height)
    if view.has_dots:
        _paint(plot, raster.thick(patterns), series.style)
    else:
        plot.characters[patterns > 0], plot.styles[patterns > 0] = ord(POINT), STYLE_ID[series.style]
    low, high = line.copy(), line
    dot_columns = np.minimum((across * 2 * width).astype(np.int64), 2 * width - 1)
    np.fmin.at(low, dot_columns, up)
    np.fmax.at(high, dot_columns, up)
    return low, high


def _above_axis(plot: Frame) -> Frame:
    rows, columns = plot.characters.shape
    return plot.part(0, 0, columns, rows - 1)


def _mark_edges(plot: Frame, low: raster.Fractions, high: raster.Fractions, style: str) -> None:
    """Mark the cell columns in which a curve is beyond the plot; of each dot column the minimum and maximum count."""
    for row, beyond, mark in ((0, high > 1 + raster.EDGE, _ABOVE), (-1, low < -raster.EDGE, _BELOW)):
        cells = beyond[::2] | beyond[1::2]
        plot.characters[row, cells] = ord(mark)
        plot.styles[row, cells] = STYLE_ID[style]


def _paint(plot: Frame, patterns: raster.Patterns, style: str) -> None:
    """Draw braille patterns where they have dots."""
    mask = patterns > 0
    plot.characters[mask] = patterns[mask] + np.uint32(raster.BLANK)
    plot.styles[mask] = STYLE_ID[style]
