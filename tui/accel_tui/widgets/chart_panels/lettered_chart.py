"""A chart whose curves carry letters, so that they can be distinguished without colours."""

from typing import ClassVar

import numpy as np

from accel_tui.widgets.chart.background import plot_region
from accel_tui.widgets.chart.cell_frame import Frame
from accel_tui.widgets.chart.chart import Chart
from accel_tui.widgets.chart.chart_view import ChartView
from accel_tui.widgets.chart.raster import EDGE, dot_rows

_APART = 28  # cells between two letters of a curve


class LetteredChart(Chart):
    """A chart that writes the one-letter names of its series on their curves."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set()

    def _draw_frame(self) -> Frame:
        plain = super()._draw_frame()
        return with_letters(plain, self._view) if self._view else plain


def with_letters(frame: Frame, view: ChartView) -> Frame:
    """The frame with the letters of the series along their curves."""
    plot = plot_region(view)
    if not plot:
        return frame
    frame = frame.copy()
    for index, series in enumerate(view.series):
        if not series.curve.end_step:
            continue
        curve = series.curve_in(view.x.low, view.x.high)
        means = view.y.fraction(curve.columns(view.x.low, view.x.high, 2 * plot.width)[2])[::2]
        means[(means < -EDGE) | (means > 1 + EDGE)] = np.nan  # the curve is not drawn there
        known = np.flatnonzero(~np.isnan(means))
        if not known.size:
            continue
        first, last = int(known[0]), int(known[-1])
        # Staggered, so that letters of close curves do not overlap.
        turns = range(first + 3 + index * _APART // max(4, len(view.series)), last - 2, _APART)
        for column in (*turns, last):
            if not np.isnan(means[column]):
                row = int(dot_rows(means[column : column + 1], plot.height)[0]) // 4
                frame.write(plot.x + column, plot.y + row, series.name, series.style)
    return frame
