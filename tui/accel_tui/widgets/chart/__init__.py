"""Charts of per-step curves: a pure core of NumPy arrays, and the widget that shows them."""

from accel_tui.widgets.chart.chart import Chart
from accel_tui.widgets.chart.mini import mini
from accel_tui.widgets.chart.series import Colour, Series

__all__ = ["Chart", "Colour", "Series", "mini"]
