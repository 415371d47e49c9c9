"""Values read back from drawn charts, by the labels beside them, as a person reads them."""

import math

import numpy as np
import pytest

from accel_tui.run_state.curve import RecordedCurve
from accel_tui.widgets.chart.axes import Axis, LogAxis
from accel_tui.widgets.chart.cell_frame import STYLES, Frame
from accel_tui.widgets.chart.chart import render
from accel_tui.widgets.chart.chart_view import PLAIN, ChartOptions, ChartSeries, ChartView, value_axis_rows
from accel_tui.widgets.chart.plot import Plot, PlotSeries, draw_plot
from accel_tui.widgets.chart.value_axis import axis_of, log_axis, value_axis

COLUMNS = 60
HEIGHTS = [*range(5, 40)]
DOTS = (0x09, 0x12, 0x24, 0xC0)
"""Braille patterns of the dot rows of a cell."""

MIDDLE = 1
"""The dot row of a cell that is at the height of its label; the one below it is as near to the middle."""


def axis_at(rows: int, low: float, high: float, *, log: bool) -> Axis:
    return (log_axis if log else value_axis)(low, high, rows=value_axis_rows(rows))


def ticks_of(frame: Frame, axis: Axis) -> dict[float, int]:
    """The values on the axis and their rows, which have the labels that are written there."""
    found: dict[float, int] = {}
    rows = len(frame.characters)
    labelled = {row: frame.text(row).split("┤")[0].split("└")[0].strip() for row in range(1, rows)}
    ticks = axis.ticks_on_rows(rows - 3, 60) if value_axis_rows(rows) else [(axis.low, rows - 2), (axis.high, 0)]
    for tick, row in ticks:
        if labelled.get(row + 1):
            found[tick] = row + 1
    return found


def dot_rows(frame: Frame, style: str) -> list[int]:
    """Rows of the dots of a style, counted from the top of the frame."""
    rows = set()
    for row, column in zip(*(frame.styles == STYLES.index(style)).nonzero(), strict=True):
        pattern = int(frame.characters[row, column]) - 0x2800
        rows |= {4 * int(row) + dot for dot in range(4) if 0 < pattern <= 0xFF and pattern & DOTS[dot]}
    return sorted(rows)


def read(ticks: dict[float, int], row: float, *, log: bool) -> float:
    """The value at a dot row, from the outermost labels."""
    forth, back = (math.log, math.exp) if log else (float, float)
    low, high = min(ticks), max(ticks)
    at = (4 * ticks[low] + MIDDLE - row) / (4 * (ticks[low] - ticks[high]))
    return back(forth(low) + at * (forth(high) - forth(low)))


def level(value: float, rows: int, axis: Axis, kind: str) -> Frame:
    """A chart with one value, as a curve, as points or as the line of a plot."""
    if kind == "plot":
        series = PlotSeries(np.array([0.0, 1.0]), np.full(2, value), "line", "secondary")
        return draw_plot(Plot("", (series,), y=axis), COLUMNS, rows)
    curve = RecordedCurve().extend(np.full(50, value)) if kind == "curve" else RecordedCurve()
    points = ((10.0, value), (40.0, value)) if kind == "points" else ()
    one = ChartSeries("", curve, points, "secondary")
    return render(ChartView(COLUMNS, rows, Axis(0, 50), axis, (one,)))


@pytest.mark.parametrize("kind", ["curve", "points", "plot"])
@pytest.mark.parametrize("log", [False, True], ids=["linear", "logarithmic"])
@pytest.mark.parametrize("rows", HEIGHTS)
def test_a_value_is_at_its_height(rows: int, log: bool, kind: str) -> None:
    axis = axis_at(rows, 0.02 if log else 0.0, 0.97, log=log)
    dot = (math.log(axis.high / axis.low) if log else axis.high - axis.low) / (4 * (value_axis_rows(rows) or rows - 2))
    for value in [0.02, 0.31, 0.57, 0.83, 0.97, axis.low, axis.high]:
        frame = level(value, rows, axis, kind)
        ticks = ticks_of(frame, axis)
        assert len(ticks) >= 2
        found = dot_rows(frame, "secondary")
        assert len(found) == (2 if kind == "points" else 1)  # points are twice as thick, with the middle of a row in it
        seen = read(ticks, found[0], log=log)
        error = math.log(seen / value) if log else seen - value
        assert abs(error) <= (1.02 if log else 0.51) * dot  # such labels are up to half a dot from their rows


@pytest.mark.parametrize("log", [False, True], ids=["linear", "logarithmic"])
@pytest.mark.parametrize("rows", HEIGHTS)
def test_a_value_with_a_label_is_in_the_middle_of_its_row(rows: int, log: bool) -> None:
    axis = axis_at(rows, 0.02 if log else 0.0, 3.3, log=log)
    for value, row in ticks_of(level(1.0, rows, axis, "curve"), axis).items():
        assert dot_rows(level(value, rows, axis, "curve"), "secondary") == [4 * row + MIDDLE]


@pytest.mark.parametrize("rows", HEIGHTS[1:])
def test_zero_is_on_the_axis_and_one_on_the_line_of_one(rows: int) -> None:
    zeros = level(0.0, rows, value_axis(0.0, 0.0, rows=rows - 3), "curve")
    assert "⠒⠒⠒" in zeros.text(rows - 2)
    assert zeros.text(rows - 2).strip().startswith("0 └")
    accuracy = ChartSeries("", RecordedCurve().extend(np.linspace(0.1, 1.0, 50)))
    axis = axis_of((accuracy,), None, PLAIN, rows=rows - 3, limits=(0.0, 1.0))
    row = ticks_of(level(1.0, rows, axis, "curve"), axis)[1.0]
    assert row in (1, 2), "at most one empty row above it"
    assert dot_rows(level(1.0, rows, axis, "curve"), "secondary") == [4 * row + MIDDLE]


VALIDATION = (0.267, 0.317, 0.350, 0.300, 0.383, 0.383, 0.417, 0.400, 0.417, 0.450)


def test_validations_in_one_row_of_cells_differ() -> None:
    axis = value_axis(0.0, 0.9, rows=value_axis_rows(12))
    assert axis == Axis(0.0, 0.9)
    heights = [dot_rows(level(value, 12, axis, "points"), "secondary")[0] for value in VALIDATION]
    expected = [4 * 10 + MIDDLE - round(value / 0.9 * 36) for value in VALIDATION]
    assert heights == expected
    assert len(set(heights)) == len(set(VALIDATION)) == 8


def test_a_logarithmic_axis_labels_only_what_is_on_its_row() -> None:
    for rows in range(3, 40):
        for low, high in ((0.2, 1.0), (0.13, 4.2), (1e-5, 3.0), (2.0, 3.1)):
            axis = log_axis(low, high, rows=rows)
            ticks = axis.ticks_on_rows(rows, 8)
            assert len(ticks) >= 2
            for tick, row in ticks:
                at = (1 - float(axis.fraction(np.array([tick]))[0])) * 4 * rows
                assert abs(at - 4 * row) <= 0.51
                assert isinstance(axis, LogAxis)


@pytest.mark.parametrize("rows", range(4, 40))
def test_an_accuracy_ends_at_one_and_has_labels_on_rows(rows: int) -> None:
    for low in (0.0, 0.08, 0.3, 0.62, 0.91):
        axis = value_axis(low, 0.998, rows=rows, limits=(0.0, 1.0))
        assert 0 <= axis.low <= low + 1e-9
        ticks = axis.ticks_on_rows(rows, 8)
        assert ticks[-1][0] == 1.0
        assert ticks[-1][1] <= 1, "at most one empty row above it"
        assert len(ticks) > 2 or rows < 6
    assert value_axis(1.0, 1.0, rows=rows, limits=(0.0, 1.0)).low == 0
    assert value_axis(0.2, 87.5, rows=rows, limits=(0.0, 1.0)).high >= 87.5  # in percent


def test_the_first_values_do_not_flatten_the_others() -> None:
    values = np.concatenate([[80.0, 35.0, 9.0], 1 + 0.3 * np.cos(np.arange(997) / 40)])
    one = (ChartSeries("loss", RecordedCurve().extend(values)),)
    assert axis_of(one, None, PLAIN, rows=9).high < 2.5
    assert axis_of(one, None, ChartOptions(log=False, clip=False), rows=9).high >= 80
    few = (ChartSeries("validation", points=tuple(enumerate([9.0, 0.9, 0.7, 0.6, 0.55, 0.5]))),)
    assert axis_of(few, None, PLAIN, rows=9).high < 2
    many = (*one, ChartSeries("validation", points=tuple((100 * each, 1.0 + each) for each in range(9))))
    assert axis_of(many, None, PLAIN, rows=9).high >= 9  # many steps do not make outliers of validations


def test_all_of_a_few_measured_values_are_drawn() -> None:
    latencies = np.array([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4])
    points = tuple(enumerate(latencies.tolist()))
    one = (ChartSeries("a", RecordedCurve().extend(latencies), points, is_resampled=True),)
    assert axis_of(one, None, ChartOptions(log=False), rows=9).high >= 6.4


def test_the_latest_of_rising_validations_is_drawn_and_a_single_high_one_is_not() -> None:
    def high(*values: float) -> float:
        one = ChartSeries("validation", points=tuple(enumerate(values)))
        return axis_of((one,), None, ChartOptions(log=False), rows=9).high

    assert high(0.5, 0.4, 0.35, 0.4, 0.5, 0.7, 1.0) >= 1.0
    assert high(0.3, 0.3, 0.35, 0.5, 0.8, 1.4, 2.6) >= 2.6
    assert high(0.5, 0.4, 0.35, 8.0, 0.33, 0.32, 0.3) < 1.0


def test_the_range_asks_for_a_logarithmic_axis_and_must_change_a_lot_to_ask_for_another() -> None:
    def of(low: float, previous: Axis | None, **given: object) -> Axis:
        one = (ChartSeries("loss", RecordedCurve().extend(np.geomspace(1.0, low, 500))),)
        return axis_of(one, None, PLAIN, previous=previous, rows=9, **given)  # type: ignore[arg-type]

    narrow, wide = of(0.05, None), of(0.001, None)
    assert not isinstance(narrow, LogAxis)
    assert isinstance(wide, LogAxis)
    assert isinstance(of(0.05, wide), LogAxis)
    assert not isinstance(of(0.2, wide), LogAxis)
    assert not isinstance(of(0.001, None, limits=(0.0, 1.0)), LogAxis)
    assert not isinstance(of(0.001, None, bounds=(0.0, None)), LogAxis)


def test_the_axis_of_a_growing_run_changes_rarely() -> None:
    rng = np.random.default_rng(4)
    steps = np.arange(4000)
    values = (2.5 * np.exp(-steps / 300) + 0.05) * rng.lognormal(0, 0.25, len(steps))
    axis, changes = None, 0
    for count in range(20, 4000, 20):
        one = (ChartSeries("loss", RecordedCurve().extend(values[:count])),)
        before, axis = axis, axis_of(one, None, PLAIN, previous=axis, rows=9)
        changes += axis is not before
    assert changes <= 8


@pytest.mark.parametrize("rows", HEIGHTS[3:])
def test_the_ends_of_a_band_are_at_their_values(rows: int) -> None:
    axis = axis_at(rows, 0.0, 1.0, log=False)
    low, high = 0.3, 0.8
    band = PlotSeries(np.array([0.0, 1.0]), np.array([[low, low], [high, high]]), "band")
    frame = draw_plot(Plot("value", (band,), x=Axis(0.0, 1.0), y=axis, has_tints=False), COLUMNS, rows)
    drawn, ticks = dot_rows(frame, "primary-band"), ticks_of(frame, axis)
    two_dots = 2 * (axis.high - axis.low) / (4 * (value_axis_rows(rows) or rows - 2))  # it has every other dot only
    found = [read(ticks, row, log=False) for row in (max(drawn), min(drawn))]
    assert found == pytest.approx([low, high], abs=two_dots)
