"""Letters on curves."""

import numpy as np

from accel_tui.run_state.curve import RecordedCurve
from accel_tui.widgets.chart.axes import Axis
from accel_tui.widgets.chart.chart import render
from accel_tui.widgets.chart.chart_view import ChartSeries, ChartView
from accel_tui.widgets.chart_panels.compare_charts import with_letters


def test_a_letter_is_on_its_curve_and_nowhere_where_that_is_beyond_the_plot() -> None:
    inside, beyond = (RecordedCurve().extend(np.full(100, value, np.float32)) for value in (1.0, 5.0))
    view = ChartView(60, 10, Axis(0, 100), Axis(0, 2), (ChartSeries("a", inside), ChartSeries("b", beyond)))
    frame = with_letters(render(view), view)
    plot = "".join(frame.text(row) for row in range(1, 8))
    assert "a" in plot
    assert "b" not in plot
    assert frame.text(1).count("▲") == 54  # it is above the plot in all of its columns
