"""Draws a chart: a pure function of its data, axes and size."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from operator import attrgetter

import numpy as np

from accel_tui.run_state.curve import Curve
from accel_tui.widgets.chart import raster
from accel_tui.widgets.chart.axes import Floats
from accel_tui.widgets.chart.background import draw_background, plot_region
from accel_tui.widgets.chart.cell_frame import Frame
from accel_tui.widgets.chart.chart_header import Legend, chart_header, legend_of
from accel_tui.widgets.chart.chart_view import ChartView
from accel_tui.widgets.chart.draw_points import draw_points, paint
from accel_tui.widgets.chart.edges import mark_edges
from accel_tui.widgets.chart.log_axis import positive
from accel_tui.widgets.chart.series import Series
from accel_tui.widgets.chart.smoothing import smoothed
from accel_tui.widgets.styled_text import TextSpan

_shared_inputs = attrgetter(*(one.name for one in fields(ChartView) if one.name not in ("series", "title")))
"""The parts of a view other than its series and header."""

_SPARSE = np.uint8(0b10010101)  # every other dot, so that the mean stands out from the band


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A drawn chart.

    Attributes:
        view: Its inputs.
        frame: Its cells without the header.
        background: The same without curves; ``None`` if there was nothing to draw.
        legend: The legend.
        header: The header's text spans.
    """

    view: ChartView
    frame: Frame
    background: Frame | None
    legend: Legend
    header: Sequence[TextSpan]


def render(view: ChartView) -> Frame:
    """Draw a chart as a frame, including the header."""
    picture = draw(view)
    picture.frame.write_line(0, picture.header)
    return picture.frame


def draw(view: ChartView, before: Picture | None = None) -> Picture:
    """Draw a chart; if curves have only grown since the previous one, only their ends."""
    if not any(_drawable(series) for series in view.series):
        frame = Frame.blank(view.columns, view.rows)
        counted = any(series.curve.end_step for series in view.series)
        message = "no finite value so far" if counted else view.empty
        frame.write(max(0, (view.columns - len(message)) // 2), view.rows // 2, message, "note")
        legend = legend_of(view, view.columns)
        return Picture(view, frame, None, legend, chart_header(view, legend, view.series))
    plot = plot_region(view)
    legend = legend_of(view, view.columns - plot.x)
    start = _unchanged(before.view, view, plot.width) if before and before.background else 0
    if before and before.background and start:
        behind, frame = before.background, before.frame.copy()
        rest = (plot.x + start, plot.y, plot.width - start, plot.height)
        frame.part(*rest).put(behind.part(*rest))
    else:
        behind = draw_background(view)
        frame = behind.copy()
    if plot:
        plot_frame = frame.part(plot.x, plot.y, plot.width, plot.height)
        drawn = [(series, _line(plot_frame, view, series, start)) for series in view.series if series.curve.end_step]
        for series, (low, high) in drawn:  # on top of all curves, so that no series hides a mark
            mark_edges(plot_frame.part(start, 0, plot.width - start, plot.height), low, high, series.style)
        for series in view.series:
            draw_points(plot_frame, view.x, view.y, series)
    return Picture(view, frame, behind, legend, chart_header(view, legend, view.series))


def _unchanged(old: ChartView, new: ChartView, width: int) -> int:
    """Number of leading cell columns of the plot that are unchanged."""
    if _shared_inputs(old) != _shared_inputs(new) or len(old.series) != len(new.series):
        return 0
    columns = width
    for before, after in zip(old.series, new.series, strict=True):
        if after == before:
            continue
        if (after.name, after.points, after.style) != (before.name, before.points, before.style):
            return 0
        earlier, later = (each.curve_in(new.x.low, new.x.high) for each in (before, after))
        # Up to the last unchanged bucket, minus a cell in which a line may end.
        share = new.x.fraction(np.array([later.middle(later.shared(earlier) - 1)]))
        columns = min(columns, int(share[0] * width) - 1)
    return max(0, columns)


def _drawable(series: Series) -> bool:
    return not math.isnan(series.curve.last_value) or any(math.isfinite(value) for _, value in series.points)


def _line(plot: Frame, view: ChartView, series: Series, start: int) -> tuple[Floats, Floats]:
    """Draw the mean of a curve, and behind it a band between its extremes.

    Of a smoothed curve the unsmoothed mean is behind too.

    Args:
        plot: Drawn on.
        view: The chart's inputs.
        series: The series.
        start: The first cell column to draw.

    Returns:
        Minimum and maximum of each dot column from there on, as fractions of the height.
    """
    height, width = plot.characters.shape
    overlap = min(start, 1)  # one cell, to join the new part with
    part, first = plot.part(start, 0, width - start, height), 2 * (start - overlap)
    curve = series.curve_in(view.x.low, view.x.high)
    low, high, mean = _resampled(curve, view, width, first)
    lows, highs = [low, mean], [high, mean]
    if view.options.smoothing:
        front = _resampled(smoothed(curve, view.options.smoothing), view, width, first)[2]
        lows, highs = [*lows, front], [*highs, front]
    band, line, *front = raster.trace(np.array(lows), np.array(highs), height)[..., overlap:]
    band &= _SPARSE
    if view.options.smoothing:
        band |= line
    paint(part, band, f"{series.style}-band")
    paint(part, front[0] if front else line, series.style)
    return np.fmin.reduce(lows)[2 * overlap :], np.fmax.reduce(highs)[2 * overlap :]


def _resampled(curve: Curve, view: ChartView, width: int, first: int) -> Floats:
    """Minimum, maximum and mean of the dot columns from one on, as fractions of the height."""
    if view.options.log:
        curve = positive(curve)
    found = view.y.fraction(curve.columns(view.x.low, view.x.high, 2 * width, first))
    if view.options.log:
        found[0, np.isnan(found[0]) & ~np.isnan(found[1])] = 0  # to the lower edge, where there is no logarithm
    return found
