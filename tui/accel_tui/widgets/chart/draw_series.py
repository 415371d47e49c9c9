"""Draws the series of a chart on its plot: curves with their bands, edges, and points such as validations."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from accel_tui.run_state.curve import Floats, RecordedCurve
from accel_tui.widgets.chart import dots, raster
from accel_tui.widgets.chart.axes import Axis
from accel_tui.widgets.chart.cell_frame import PARTS, Frame
from accel_tui.widgets.chart.chart_view import ChartSeries, ChartView

POINT = "●"
"""Sign of a point, where the terminal shows no dots."""

_ABOVE, _BELOW = "▲", "▼"  # by the edge of the plot
_LINE = 2  # dots that a line has in a cell
_QUADRANT_DOTS = np.array([0x03, 0x18, 0x44, 0xA0], np.uint8)  # in the order of the bits of PARTS
_LOWER_DOTS = np.uint8(0xE4)  # of its lower half
_CELLS_A_POINT = 3  # closer points are joined to a line
_DASH = np.array([[-1.0], [0.0], [1.0]])  # dot columns of a point, beside its own
_NO_SIGNS = tuple(map(ord, " ┈┊─┬"))  # characters of the background that may be hidden
SPARSE = np.uint8(0b10010101)
"""Every other dot, so that the mean stands out from the band."""


def draw_series(plot: Frame, view: ChartView) -> None:
    """Draw all curves, and above them all points.

    Args:
        plot: The plot with its grid; drawn on.
        view: The chart's inputs.
    """
    height, width = plot.characters.shape
    axis = plot.part(0, height - 1, width, 1)
    before, signs = axis.copy(), ~np.isin(axis.characters, _NO_SIGNS) if view.marks else slice(0)
    curves = [(series, curve_lines(view, series, 2 * width)) for series in view.series if series.curve.end_step]
    points = [(series, _Points.of(view, series, width, height)) for series in view.series if series.points]
    lines = [*(line for _, found in curves for line in found), *((each.line, each.line) for _, each in points)]
    # Several lines at once take hardly longer than one.
    ends = np.array([[low for low, _ in lines], [high for _, high in lines]])
    patterns = iter(raster.trace(ends[0], ends[1], height) if lines else ())
    inside = plot.part(0, 0, width, height - 1) if height > 1 and view.axis_rows else plot
    for series, found in curves:
        drawn = [next(patterns) for _ in found]
        is_alone = len(curves) == 1  # ranges of several would hide one another's lines
        if view.has_tints and is_alone:
            rows = len(inside.characters)
            inside.tint(_below(drawn[-1][:rows], found[-1][0]), f"{series.style}-area")
            paint_range(inside, drawn[0][:rows], series.style)
        if view.has_tints or not is_alone:
            drawn[0] = np.zeros_like(drawn[0])
        _paint_curve(plot, drawn, series.style)
    for series, found in curves:  # on top of all curves, so that no series hides a mark
        low, high = found[0]
        for line, _ in found[1:]:
            low, high = np.fmin(low, line), np.fmax(high, line)
        _mark_edges(inside, low, high, series.style)
    for series, each in points:
        _paint_points(plot, each.patterns(next(patterns)), series.style, has_dots=view.has_dots)
        if each.are_beyond:
            _mark_edges(inside, *each.ends, series.style)
    axis.characters[signs], axis.styles[signs] = before.characters[signs], before.styles[signs]


def are_joined(x: Axis, series: ChartSeries, width: int) -> bool:
    """Whether points are drawn as a line: those without a curve, and those that are too close to be apart."""
    seen = sum(x.low <= step <= x.high for step, _ in series.points)
    return seen > 1 and (not series.curve.end_step or seen * _CELLS_A_POINT > width)


def curve_lines(view: ChartView, series: ChartSeries, columns: int) -> list[tuple[Floats, Floats]]:
    """The lower and upper lines of a curve: of its extremes, of its mean, and of the smoothed mean if asked for.

    All are fractions of the height by dot column.
    """
    curve = series.curve_in(view.x.low, view.x.high)
    low, high, mean = _resampled(curve, view, columns)
    if not view.options.smoothing:
        return [(low, high), (mean, mean)]
    front = _resampled(smoothed(curve, view.options.smoothing), view, columns)[2]
    return [(low, high), (mean, mean), (front, front)]


def _below(line: raster.Patterns, heights: Floats) -> npt.NDArray[np.bool_]:
    """The cells that are below a line, most of each; all cells of a column where it is above the plot."""
    has_line = line > 0
    above = (heights > 1 + raster.EDGE).reshape(-1, 2).any(axis=1) & ~has_line.any(axis=0)
    is_over = np.logical_or.accumulate(np.where(line & _LOWER_DOTS, False, has_line))
    is_over[1:] |= np.logical_or.accumulate(has_line)[:-1]
    goes_on = np.zeros_like(has_line)
    goes_on[:-1] = np.logical_or.accumulate(has_line[::-1])[::-1][1:]
    ends = goes_on | (has_line & (line & _LOWER_DOTS > 0))
    return is_over & ~ends | above


def paint_range(plot: Frame, band: raster.Patterns, style: str, tint: str = "range") -> None:
    """Tint the range of a curve's values, to a quarter of a cell."""
    band = np.where(np.bitwise_count(band) > _LINE, band, np.uint8(0))
    quarters = sum(((band & dots) > 0).astype(np.uint8) << bit for bit, dots in enumerate(_QUADRANT_DOTS))
    is_whole = quarters == len(PARTS) - 1
    is_part = (quarters > 0) & ~is_whole
    plot.cover(is_part, f"{style}-{tint}")
    plot.characters[is_part] = PARTS[quarters[is_part]]
    plot.characters[is_whole & np.isin(plot.characters, PARTS)] = raster.BLANK
    plot.tint(is_whole, f"{style}-{tint}")


def _paint_curve(plot: Frame, patterns: Sequence[raster.Patterns], style: str) -> None:
    """Draw the mean of a curve, and behind it the band; of a smoothed curve the unsmoothed mean is behind too."""
    band, line, *fronts = patterns
    band &= SPARSE
    if fronts:
        band |= line
    _paint(plot, band, f"{style}-band")
    _paint(plot, fronts[0] if fronts else line, style)


def _resampled(curve: RecordedCurve, view: ChartView, columns: int) -> Floats:
    """Minimum, maximum and mean of the dot columns, as fractions of the height."""
    if view.is_log:
        curve = _positive(curve)
    found = view.y.fraction(curve.columns(view.x.low, view.x.high, columns))
    if view.is_log:
        found[0, np.isnan(found[0]) & ~np.isnan(found[1])] = 0  # to the lower edge, where there is no logarithm
    return found


def _positive(curve: RecordedCurve) -> RecordedCurve:
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


@dataclass(frozen=True, slots=True, eq=False)
class _Points:
    """The visible points of a series, as fractions of the width and the height."""

    across: Floats
    """Distance from the left."""
    up: Floats
    """Distance from the bottom; NaN for values that are not finite."""
    line: Floats
    """The height of each dot column if they are joined, else NaN."""
    dash: Floats
    """Dot columns of a point, beside its own."""
    size: tuple[int, int]
    """Columns and rows of the plot."""

    @classmethod
    def of(cls, view: ChartView, series: ChartSeries, width: int, height: int) -> "_Points":
        steps, values = np.array(series.points, dtype=np.float64).T
        across, up = view.x.fraction(steps), view.y.fraction(np.where(np.isfinite(values), values, np.nan))
        shown = (across >= 0) & (across <= 1)
        across, up = across[shown], up[shown]
        line = np.full(2 * width, math.nan)
        if are_joined(view.x, series, width):
            line = np.interp((np.arange(2 * width) + 0.5) / (2 * width), across, up, left=math.nan, right=math.nan)
        return cls(across, up, line, _DASH if view.has_dots else _DASH[1:2], (width, height))

    def patterns(self, line: raster.Patterns) -> raster.Patterns:
        """The points, or the line that joins them."""
        if not np.isnan(self.line).all():
            return line
        width, height = self.size
        across = self.across + self.dash / (2 * width)
        return dots.scatter(across.ravel(), np.tile(self.up, len(self.dash)), width, height)

    @property
    def are_beyond(self) -> bool:
        """Whether some are above or below the plot."""
        return bool(((self.up > 1 + raster.EDGE) | (self.up < -raster.EDGE)).any())

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """Minimum and maximum of each dot column."""
        low, high = self.line.copy(), self.line.copy()
        columns = np.minimum((self.across * len(low)).astype(np.int64), len(low) - 1)
        np.fmin.at(low, columns, self.up)
        np.fmax.at(high, columns, self.up)
        return low, high


def _paint_points(plot: Frame, patterns: raster.Patterns, style: str, *, has_dots: bool) -> None:
    """Draw points in the cells that they need: twice as thick as curves, or as signs."""
    if has_dots:
        _paint(plot, raster.thick(patterns), style)
    else:
        plot.cover(patterns > 0, style)
        plot.characters[patterns > 0] = ord(POINT)


def _mark_edges(plot: Frame, low: raster.Fractions, high: raster.Fractions, style: str) -> None:
    """Mark the cell columns in which a curve is beyond the plot; of each dot column the minimum and maximum count."""
    for row, beyond, mark in ((0, high > 1 + raster.EDGE, _ABOVE), (-1, low < -raster.EDGE, _BELOW)):
        if beyond.any():
            cells = beyond[::2] | beyond[1::2]
            plot.characters[row, cells] = ord(mark)
            plot.part(0, row % len(plot.characters), len(cells), 1).restyle(cells[np.newaxis], style)


def _paint(plot: Frame, patterns: raster.Patterns, style: str) -> None:
    """Draw braille patterns where they have dots."""
    mask = patterns > 0
    plot.cover(mask, style)
    plot.characters[mask] = patterns[mask] + np.uint32(raster.BLANK)


def smoothed_values(values: Floats, weight: float) -> Floats:
    """The moving average of values.

    They are the means of buckets: of steps at full resolution, else of as many steps as one dot stands for. So a weight
    smooths as much as is visible.

    The n-th is ``sum(weight ** (n - i) * values[i]) / sum(weight ** (n - i))`` over all ``i`` up to ``n``: the bias
    correction of Kingma and Ba, "Adam", section 3. NaN stays in place and is ignored.

    Args:
        values: Shape ``[n]``.
        weight: Weight of earlier values, at least 0 and below 1.
    """
    known = np.flatnonzero(~np.isnan(values))
    smoothed: Floats = np.full(len(values), math.nan)
    if not known.size:
        return smoothed
    correction = _correction(weight)
    sums = (1 - weight) * values[known]
    reach = 1  # number of values in each sum, doubled per iteration
    while reach < min(known.size, len(correction)):
        sums[reach:] += weight**reach * sums[:-reach]
        reach *= 2
    sums[: len(correction)] /= correction[: known.size]
    smoothed[known] = sums
    return smoothed


def smoothed(curve: RecordedCurve, weight: float) -> RecordedCurve:
    """A curve of the moving average of its buckets' means."""
    means = smoothed_values(curve.means, weight)
    return replace(curve, low=means, high=means, total=np.where(curve.finite > 0, means, 0) * curve.finite)


@lru_cache(maxsize=8)
def _correction(weight: float) -> Floats:
    """The sums of weights of the first, second, ... value, until they are 1 within float precision."""
    count = math.ceil(math.log(1e-17) / math.log(weight)) if weight else 1
    return 1 - weight ** np.arange(1.0, count + 1)
