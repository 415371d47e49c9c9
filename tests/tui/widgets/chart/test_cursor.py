"""Reading a chart at one step."""

from dataclasses import replace

import numpy as np
import pytest

from accel_tui.run_state.curve import CAPACITY, RecordedCurve
from accel_tui.widgets.chart.axes import Axis
from accel_tui.widgets.chart.background import plot_region
from accel_tui.widgets.chart.cell_frame import CELL_STYLES
from accel_tui.widgets.chart.chart import render
from accel_tui.widgets.chart.chart_view import ChartSeries, ChartView
from accel_tui.widgets.chart.cursor import column_of, step_at, value_at, with_cursor
from accel_tui.widgets.chart.scale import epochs


def view(columns: int = 80, rows: int = 12, steps: int = 1000, first: int = 0) -> ChartView:
    curve = RecordedCurve().extend(np.arange(steps, dtype=np.float32))
    points = ChartSeries("validation", points=((99, 505.0), (199, 404.0)), style="secondary")
    axes = Axis(first, steps), Axis(0, steps)
    return ChartView(columns, rows, *axes, (ChartSeries("training", curve), points), "loss")


@pytest.mark.parametrize("first", [0, 984])
def test_a_column_is_of_a_step_that_is_in_that_column(first: int) -> None:
    one = view(first=first)
    plot = plot_region(one)
    for x in range(plot.x, plot.right):
        step = step_at(one, x)
        assert step is not None
        assert column_of(one, step) == x
    assert step_at(one, plot.x - 1) is None
    assert column_of(one, first - 1) is None


def test_the_line_is_at_the_step_and_the_values_there_are_said() -> None:
    one = view()
    plain = render(one)
    read = with_cursor(plain, one, 150)
    assert read.text(0).startswith("loss ─ training 150  ━ validation 505")
    column = column_of(one, 150) or 0
    assert all(read.text(y)[column] == "│" or "\u2800" < read.text(y)[column] <= "\u28ff" for y in range(1, 10))
    assert read.text(10)[column] == "┴"
    assert "150" in read.text(11).split()
    # Nothing else is another: labels that the step would cut are gone whole.
    rows, _ = (plain.characters[1:10] != read.characters[1:10]).nonzero()
    assert len(rows) <= 9
    assert set(read.text(11).split()) - {"150"} <= set(plain.text(11).split())


def test_the_area_below_a_curve_goes_on_behind_the_line() -> None:
    one = replace(view(), has_tints=True)
    read, column = with_cursor(render(one), one, 900), column_of(one, 900)
    assert CELL_STYLES[read.styles[8, column or 0]] == "label on primary-area"


def test_the_place_is_said_in_what_the_axis_counts() -> None:
    one = replace(view(), scale=epochs([(100, 1), (200, 2)], 100))
    assert "1.51" in with_cursor(render(one), one, 150).text(11).split()


def test_many_steps_known_as_one_are_said_as_a_range() -> None:
    steps = 2 * CAPACITY
    one = view(steps=steps)
    assert value_at(one, one.series[0], 101) == "100 to 101"
    assert value_at(one, one.series[1], 50) == ""
    assert value_at(one, one.series[1], steps - 1) == "404"


def test_where_nothing_is_that_is_said() -> None:
    one = view()
    ones = np.ones(1000)
    curve = RecordedCurve(2000, 1, 1.0, ones, ones, ones, np.ones(1000, np.int64), 1000)
    empty = ChartView(80, 12, one.x, one.y, (ChartSeries("cpu:0", curve),))
    assert "nothing there" in with_cursor(render(one), empty, 10).text(0)


@pytest.mark.parametrize(("columns", "rows"), [(10, 3), (1, 1), (14, 5), (80, 1)])
def test_a_chart_without_room_is_read_without_an_error(columns: int, rows: int) -> None:
    one = view(columns, rows)
    assert with_cursor(render(one), one, 500).characters.shape == (rows, columns)


def test_of_many_series_as_many_as_fit_are_said_whole_with_their_names() -> None:
    one = view(columns=50)
    one = replace(one, series=tuple(replace(one.series[0], name=name) for name in "abcdefgh"))
    head = with_cursor(render(one), one, 150).text(0)
    assert head.rstrip() == "loss ─ a 150  ─ b 150  ─ c 150  ─ d 150  +4"
