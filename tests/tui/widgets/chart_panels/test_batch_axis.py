"""An axis of batch sizes, whose rows may be in any order."""

import numpy as np
import pytest

from accel_tui.run_state.curve import RecordedCurve
from accel_tui.widgets.chart.chart_view import ChartSeries
from accel_tui.widgets.chart_panels.shared_axis import PER_DOUBLING, BatchAxis


def curve(*values: float) -> RecordedCurve:
    return RecordedCurve().extend(np.array(values, np.float64))


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_points_are_by_rising_batch_size(order: tuple[int, ...]) -> None:
    sizes, values = ([column[at] for at in order] for column in ((1.0, 2.0, 8.0), (10.0, 20.0, 40.0)))
    axis = BatchAxis.by((curve(*sizes),))
    placed = axis.place_on_axis(0, ChartSeries("throughput", curve(*values)))
    assert placed.points == ((0, 10.0), (PER_DOUBLING, 20.0), (3 * PER_DOUBLING, 40.0))
    assert placed.curve.means[[0, PER_DOUBLING, 3 * PER_DOUBLING]].tolist() == [10.0, 20.0, 40.0]
    assert (placed.curve.last_value, axis.ticks) == (40.0, 3 * PER_DOUBLING + 1)
