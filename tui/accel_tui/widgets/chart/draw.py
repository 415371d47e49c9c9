"""Draws a chart: what is seen of it, as a pure function of its data, its axes and its size."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from operator import attrgetter

import numpy as np

from accel_tui.run.curve import Curve
from accel_tui.widgets.chart import raster
from accel_tui.widgets.chart.axes import Floats
from accel_tui.widgets.chart.background import draw_background, plot_of
from accel_tui.widgets.chart.cell_frame import Frame
from accel_tui.widgets.chart.chart_header import Legend, chart_header, legend_of
from accel_tui.widgets.chart.chart_view import ChartView
from accel_tui.widgets.chart.draw_points import draw_points, paint
from accel_tui.widgets.chart.edges import mark_edges
from accel_tui.widgets.chart.log_axis import positive
from accel_tui.widgets.chart.series import Series
from accel_tui.widgets.chart.smoothing import smoothed
from accel_tui.widgets.styled_text import Piece

_around = attrgetter(*(one.name for one in fields(ChartView) if one.name not in ("series", "title")))
"""All of a view but what its curves and its first line are."""

_SPARSE = np.uint8(0b10010101)  # every other dot: the mean stands out from the band that it runs through


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A chart as it was drawn.

    Attributes:
        view: What it shows.
        frame: What it looks like, but for its first line.
        background: The same without its curves; nothing where there was nothing to draw.
        key: What its first line says beside the latest values.
        header: Its first line.
    """

    view: ChartView
    frame: Frame
    background: Frame | None
    key: Legend
    header: Sequence[Piece]


def render(view: ChartView) -> Frame:
    """What a chart looks like."""
    picture = draw(view)
    picture.frame.write_line(0, picture.header)
    return picture.frame


def draw(view: ChartView, before: Picture | None = None) -> Picture:
    """Draw a chart; where curves have only gone on since the picture before, no more than their ends."""
    if not any(_drawable(series) for series in view.series):
        frame = Frame.blank(view.columns, view.rows)
        counted = any(series.curve.count for series in view.series)
        message = "no finite value so far" if counted else view.empty
        frame.write(max(0, (view.columns - len(message)) // 2), view.rows // 2, message, "note")
        key = legend_of(view, view.columns)
        return Picture(view, frame, None, key, chart_header(view, key, view.series))
    plot = plot_of(view)
    key = legend_of(view, view.columns - plot.x)
    start = _unchanged(before.view, view, plot.width) if before and before.background else 0
    if before and before.background and start:
        behind, frame = before.background, before.frame.copy()
        rest = (plot.x + start, plot.y, plot.width - start, plot.height)
        frame.part(*rest).put(behind.part(*rest))
    else:
        behind = draw_background(view)
        frame = behind.copy()
    if plot:
        inside = frame.part(plot.x, plot.y, plot.width, plot.height)
        drawn = [(series, _line(inside, view, series, start)) for series in view.series if series.curve.count]
        for series, (low, high) in drawn:  # on top of all curves, so that no mark is hidden by another series
            mark_edges(inside.part(start, 0, plot.width - start, plot.height), low, high, series.style)
        for series in view.series:
            draw_points(inside, view.x, view.y, series)
    return Picture(view, frame, behind, key, chart_header(view, key, view.series))


def _unchanged(old: ChartView, new: ChartView, width: int) -> int:
    """How many columns of cells of the plot are as they were, from the left."""
    if _around(old) != _around(new) or len(old.series) != len(new.series):
        return 0
    columns = width
    for before, after in zip(old.series, new.series, strict=True):
        if after == before:
            continue
        if (after.name, after.points, after.style) != (before.name, before.points, before.style):
            return 0
        earlier, later = (one.seen(new.x.low, new.x.high) for one in (before, after))
        # Up to the last bucket that is the same, and a cell less, since a line may end within one.
        share = new.x.fraction(np.array([later.middle(later.shared(earlier) - 1)]))
        columns = min(columns, int(share[0] * width) - 1)
    return max(0, columns)


def _drawable(series: Series) -> bool:
    return not math.isnan(series.curve.last) or any(math.isfinite(value) for _, value in series.points)


def _line(plot: Frame, view: ChartView, series: Series, start: int) -> tuple[Floats, Floats]:
    """Draw a curve's mean, and behind it all that lies between its extremes, to within a dot.

    Of a smoothed curve the mean is behind too, and the smoothed one is in front.

    Args:
        plot: Drawn on.
        view: What is drawn.
        series: The curve of it.
        start: The first column of cells that is drawn.

    Returns:
        The lowest and the highest value of each column of dots from there on, as fractions of the height.
    """
    height, width = plot.characters.shape
    more = min(start, 1)  # a cell, which the end is joined with
    rest, first = plot.part(start, 0, width - start, height), 2 * (start - more)
    curve = series.seen(view.x.low, view.x.high)
    low, high, mean = _resampled(curve, view, width, first)
    lows, highs = [low, mean], [high, mean]
    if view.lens.smoothing:
        front = _resampled(smoothed(curve, view.lens.smoothing), view, width, first)[2]
        lows, highs = [*lows, front], [*highs, front]
    band, line, *front = raster.trace(np.array(lows), np.array(highs), height)[..., more:]
    band &= _SPARSE
    if view.lens.smoothing:
        band |= line
    paint(rest, band, f"{series.style}-band")
    paint(rest, front[0] if front else line, series.style)
    return np.fmin.reduce(lows)[2 * more :], np.fmax.reduce(highs)[2 * more :]


def _resampled(curve: Curve, view: ChartView, width: int, first: int) -> Floats:
    """The lowest, the highest and the mean value of the columns of dots from one on, as fractions of the height."""
    if view.lens.log:
        curve = positive(curve)
    found = view.y.fraction(curve.columns(view.x.low, view.x.high, 2 * width, first))
    if view.lens.log:
        found[0, np.isnan(found[0]) & ~np.isnan(found[1])] = 0  # down to where no logarithm goes
    return found
