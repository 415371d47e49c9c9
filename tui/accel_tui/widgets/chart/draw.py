"""Draws a chart: a pure function of its data, axes and size."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from operator import attrgetter

import numpy as np

from accel_tui.widgets.chart.background import draw_background, layout_of
from accel_tui.widgets.chart.cell_frame import Frame
from accel_tui.widgets.chart.chart_header import Legend, chart_header, legend_of
from accel_tui.widgets.chart.chart_view import ChartView, Series
from accel_tui.widgets.chart.draw_series import draw_series
from accel_tui.widgets.styled_text import TextSpan

_shared_inputs = attrgetter(*(one.name for one in fields(ChartView) if one.name not in ("series", "title")))
"""The parts of a view other than its series and header."""


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A drawn chart.

    Attributes:
        view: Its inputs.
        frame: Its cells without the header.
        background: The same without curves; ``None`` if there was nothing to draw.
        label_width: Width of the longest value label; 0 if there was nothing to draw.
        legend: The legend.
        header: The header's text spans.
    """

    view: ChartView
    frame: Frame
    background: Frame | None
    label_width: int
    legend: Legend
    header: Sequence[TextSpan]


def render(view: ChartView) -> Frame:
    """Draw a chart as a frame, including the header."""
    picture = draw(view)
    picture.frame.write_line(0, picture.header)
    return picture.frame


def draw(view: ChartView, before: Picture | None = None) -> Picture:
    """Draw a chart; if curves have only grown since the previous one, only their ends."""
    background, label_width, width = None, 0, view.columns
    if any(_drawable(series) for series in view.series):
        layout = layout_of(view)
        plot, label_width, width = layout.plot, layout.label_width, view.columns - layout.plot.x
        start = _unchanged(before.view, view, plot.width) if before and before.background else 0
        if before and before.background and start:
            background, frame = before.background, before.frame.copy()
            rest = (plot.x + start, plot.y, plot.width - start, plot.height)
            frame.part(*rest).put(background.part(*rest))
        else:
            background = draw_background(view, layout)
            frame = background.copy()
        if plot:
            draw_series(frame.part(*plot), view, start)
    else:
        frame = Frame.blank(view.columns, view.rows)
        counted = any(series.curve.end_step for series in view.series)
        message = "no finite value so far" if counted else view.empty
        frame.write(max(0, (view.columns - len(message)) // 2), view.rows // 2, message, "note")
    legend = legend_of(view, width)
    return Picture(view, frame, background, label_width, legend, chart_header(view, legend, view.series))


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
