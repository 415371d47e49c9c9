"""Charts of per-step curves: a pure core of NumPy arrays, and the widget that shows them.

Nothing is imported here, since :mod:`~accel_tui.widgets.chart.sparkline` is used before NumPy is imported.
"""
