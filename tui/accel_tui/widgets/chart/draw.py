"""Draws a chart: a pure function of its data, axes and size."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from accel_tui.widgets.chart.background import draw_background, layout_of
from accel_tui.widgets.chart.cell_frame import Frame
from accel_tui.widgets.chart.chart_header import Legend, chart_header, legend_of
from accel_tui.widgets.chart.chart_view import ChartView, Series
from accel_tui.widgets.chart.draw_series import draw_series
from accel_tui.widgets.styled_text import TextSpan


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A drawn chart.

    Attributes:
        view: Its inputs.
        frame: Its cells without the header.
        label_width: Width of the longest value label; 0 if there was nothing to draw.
        legend: The legend.
        header: The header's text spans.
    """

    view: ChartView
    frame: Frame
    label_width: int
    legend: Legend
    header: Sequence[TextSpan]


def render(view: ChartView) -> Frame:
    """Draw a chart as a frame, including the header."""
    picture = draw(view)
    picture.frame.write_line(0, picture.header)
    return picture.frame


def draw(view: ChartView) -> Picture:
    """Draw a chart: background, series, header; or a message if there is nothing to draw."""
    label_width, width = 0, view.columns
    if any(_drawable(series) for series in view.series):
        layout = layout_of(view)
        label_width, width = layout.label_width, view.columns - layout.plot.x
        frame = draw_background(view, layout)
        if layout.plot:
            draw_series(frame.part(*layout.plot), view)
    else:
        frame = Frame.blank(view.columns, view.rows)
        counted = any(series.curve.end_step for series in view.series)
        message = "no finite value so far" if counted else view.empty
        frame.write(max(0, (view.columns - len(message)) // 2), view.rows // 2, message, "note")
    legend = legend_of(view, width)
    return Picture(view, frame, label_width, legend, chart_header(view, legend, view.series))


def _drawable(series: Series) -> bool:
    return not math.isnan(series.curve.last_value) or any(math.isfinite(value) for _, value in series.points)
