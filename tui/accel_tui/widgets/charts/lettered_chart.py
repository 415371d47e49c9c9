"""A chart whose curves can be told apart without colours: each has its letter on it, again and again."""

from typing import ClassVar

import numpy as np

from accel_tui.widgets.chart.background import plot_of
from accel_tui.widgets.chart.cell_frame import Frame
from accel_tui.widgets.chart.chart import Chart
from accel_tui.widgets.chart.chart_view import ChartView
from accel_tui.widgets.chart.raster import EDGE, dot_rows

_APART = 28  # cells from a letter to the same one


class LetteredChart(Chart):
    """A chart that writes the names of its series, a letter each, on their curves."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set()

    def _picture(self) -> Frame:
        plain = super()._picture()
        return with_letters(plain, self._view) if self._view else plain


def with_letters(frame: Frame, view: ChartView) -> Frame:
    """A picture with the names of the series on their curves, at the end of each and further left."""
    plot = plot_of(view)
    if not plot:
        return frame
    frame = frame.copy()
    for place, series in enumerate(view.series):
        if not series.curve.count:
            continue
        curve = series.seen(view.x.low, view.x.high)
        means = view.y.fraction(curve.columns(view.x.low, view.x.high, 2 * plot.width)[2])[::2]
        means[(means < -EDGE) | (means > 1 + EDGE)] = np.nan  # there the curve is not drawn
        known = np.flatnonzero(~np.isnan(means))
        if not known.size:
            continue
        first, last = int(known[0]), int(known[-1])
        # Not below one another where curves lie close, but in turn.
        turns = range(first + 3 + place * _APART // max(4, len(view.series)), last - 2, _APART)
        for column in (*turns, last):
            if not np.isnan(means[column]):
                row = int(dot_rows(means[column : column + 1], plot.height)[0]) // 4
                frame.write(plot.x + column, plot.y + row, series.name, series.style)
    return frame
