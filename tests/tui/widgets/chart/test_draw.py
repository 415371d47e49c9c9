"""Whole charts as text."""

import math
from dataclasses import replace
from itertools import groupby

import numpy as np
import pytest

from accel_tui.run_state.curve import RecordedCurve
from accel_tui.widgets.chart.axes import Axis, step_axis
from accel_tui.widgets.chart.background import plot_region
from accel_tui.widgets.chart.cell_frame import CELL_STYLES, STYLES, Frame
from accel_tui.widgets.chart.chart import render
from accel_tui.widgets.chart.chart_view import PLAIN, ChartOptions, ChartSeries, ChartView, value_axis_rows
from accel_tui.widgets.chart.scale import epochs
from accel_tui.widgets.chart.value_axis import axis_of

GAP = math.nan


def curve(*values: float) -> RecordedCurve:
    return RecordedCurve().extend(np.array(values, dtype=np.float32))


def picture(
    *series: ChartSeries, columns: int = 40, rows: int = 9, x: Axis | None = None, y: Axis | None = None
) -> Frame:
    steps = max((one.curve.end_step for one in series), default=0)
    return render(ChartView(columns, rows, x or step_axis(steps), y or Axis(0, 2), series, "loss", "waiting"))


def lines(frame: Frame) -> list[str]:
    return [frame.text(row).rstrip() for row in range(len(frame.characters))]


UNCHANGED = ChartOptions(log=False, clip=False)
FALLING = ChartSeries("training", curve(*[2 / (1 + step / 4) for step in range(20)]))
VALIDATIONS = ChartSeries("validation", points=((5, 0.9), (10, 0.7), (20, 0.5)), style="secondary")


def test_a_line_and_its_validations() -> None:
    assert lines(picture(FALLING, VALIDATIONS)) == [
        "loss ── 0.3478  ━━ 0.5000",
        "   2 ┤⢆┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈",
        "     │ ⠣⡀",
        "     │  ⠈⠢⢄⡀",
        "   1 ┤┈┈┈┈┈⠈⠑⠢⢠⣄⣀⣀⣀┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈",
        "     │         ⠈⠉⠉⠉⠛⠛⠛⠳⠶⠶⠶⠶⠶⠶⢦⣤⣤⣤⣤⣤⣤⣄⣀⣀⣀",
        "     │                       ⠉⠉⠉⠉⠉⠉⠑⠈⠉⠉⠉",
        "   0 └┬────────────────┬───────────────┬",
        "      0               10              20",
    ]


def test_gaps_stay_open_and_are_counted() -> None:
    assert lines(picture(ChartSeries("loss", curve(2, 1, GAP, 1, GAP, GAP, 0, 2, 1, 1)))) == [
        "loss ── 1.0000                    3 gaps",
        "   2 ┤⢆┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈⡰⡀┈┈┈┈┈┈┈┈┈",
        "     │⠈⢆                    ⢀⠇⠘⡄",
        "     │ ⠈⢆                   ⡜  ⠘⢄",
        "   1 ┤┈┈⠈⠂┈┈┈┈┈┈⠂┈┈┈┈┈┈┈┈┈┈⢠⠃┈┈┈⠈⠒⠒⠒⠒┈┈┈",
        "     │                     ⡎",
        "     │                    ⢰⠁",
        "   0 └┬────────────────┬──⠃────────────┬",
        "      0                5              10",
    ]


def test_validations_too_close_to_tell_apart_are_joined() -> None:
    wave = ChartSeries("validation", points=tuple((step, 1 + math.sin(step / 3)) for step in range(30)))
    assert lines(picture(wave, x=Axis(0, 30))) == [
        "loss ━━ 0.7605",
        "   2 ┤┈┈┈⣠⡴⠶⣤⡀┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈⢀⣤⠶⢦⣄┈┈┈┈┈",
        "     │ ⢀⡼⠁   ⠙⣆              ⣰⠋   ⠈⢧⡀",
        "     │⢠⠞      ⠈⢧⡀           ⡼⠁      ⠳⡄",
        "   1 ┤⠋┈┈┈┈┈┈┈┈┈⢳⡀┈┈┈┈┈┈┈┈⢀⡞⠁┈┈┈┈┈┈┈┈⠹⣄┈",
        "     │           ⠳⡄      ⢠⠞           ⠈",
        "     │            ⠙⢦⡀  ⢀⡴⠋",
        "   0 └┬──────────┬──⠙⠶⠶⠋────┬──────────┬",
        "      0         10         20         30",
    ]


def test_validation_has_the_cells_that_it_needs_and_is_thicker() -> None:
    level = ChartSeries("training", curve(*[1.0] * 30))
    over = ChartSeries("validation", points=((10, 1.0), (20, 1.0)), style="secondary")
    frame = picture(level, over, x=Axis(0, 30))
    row = 4  # of the label 1
    drawn = [(frame.text(row)[column], STYLES[frame.styles[row, column]]) for column in range(6, 39)]
    assert [style for _, style in drawn] == ["primary"] * 11 + ["secondary"] * 12 + ["primary"] * 10
    assert {text for text, style in drawn if style == "primary"} == {"⠒"}
    assert {text for text, style in drawn if style == "secondary"} == {"⠰", "⠶", "⠆"}


def test_without_dots_validations_have_a_sign() -> None:
    view = ChartView(40, 9, Axis(0, 20), Axis(0, 2), (FALLING, VALIDATIONS), "loss", has_dots=False)
    frame = render(view)
    assert lines(frame)[0] == "loss ── 0.3478  ● 0.5000"
    signs = [(row, column) for row in range(1, 8) for column in range(6, 40) if frame.text(row)[column] == "●"]
    assert {column for _, column in signs} == {*range(14, 40)}
    assert {STYLES[frame.styles[place]] for place in signs} == {"secondary"}


def test_names_are_told_where_there_is_room() -> None:
    assert lines(picture(FALLING, VALIDATIONS, columns=60))[0] == "loss ── training 0.3478  ━━ validation 0.5000"
    assert lines(picture(FALLING, VALIDATIONS, columns=20))[0] == "loss ── 0.3478"


@pytest.mark.parametrize(
    ("series", "message"),
    [
        ((), "waiting"),
        ((ChartSeries("loss"),), "waiting"),
        ((ChartSeries("loss", curve(GAP, GAP)),), "no finite value so far"),
    ],
)
def test_without_a_value_there_are_words_and_no_made_up_axes(series: tuple[ChartSeries, ...], message: str) -> None:
    frame = picture(*series, rows=3)
    assert lines(frame)[1] == " " * ((40 - len(message)) // 2) + message
    assert lines(frame)[2] == ""


def test_small_charts_lose_step_labels_first_and_value_labels_next() -> None:
    assert lines(picture(FALLING, columns=20, rows=5)) == [
        "loss ── 0.3478",
        "   2 ┤⢆┈┈┈┈┈┈┈┈┈┈┈┈┈",
        "     │⠈⠢⢄⡀",
        "     │   ⠈⠑⠒⠒⠤⠤⠤⠤⣀⣀⡀",
        "   0 ┤┈┈┈┈┈┈┈┈┈┈┈┈┈┈",
    ]
    assert lines(picture(FALLING, columns=10, rows=3)) == [
        "loss",
        "⠢⢄⣀⡀",
        "   ⠈⠉⠉⠉⠉⠉⠉",
    ]


@pytest.mark.parametrize("columns", [1, 2, 5, 11, 17, 18])
@pytest.mark.parametrize("rows", [1, 2, 5, 6, 7])
def test_no_size_is_too_small(columns: int, rows: int) -> None:
    assert picture(FALLING, VALIDATIONS, columns=columns, rows=rows).characters.shape == (rows, columns)


def test_one_step_is_a_dot() -> None:
    assert lines(picture(ChartSeries("loss", curve(1)), columns=12, rows=3))[1:] == ["⡀", ""]


def test_a_spike_among_many_steps_is_a_dim_mark_above_the_mean() -> None:
    values = np.full(100_000, 0.9, np.float32)
    values[51_000] = 2
    frame = picture(ChartSeries("loss", RecordedCurve().extend(values)))
    column = 6 + 34 // 2
    marked = [row for row in range(1, 7) if frame.characters[row, column] >= 0x2800]
    assert marked == [1, 2, 3, 4]
    assert [STYLES[frame.styles[row, column]] for row in marked] == [*["primary-band"] * 3, "primary"]


def test_the_last_series_is_on_top_and_points_are_above_lines() -> None:
    flat = curve(*[1.0] * 10)
    frame = picture(
        ChartSeries("points", points=((5, 1.0),), style="error"),
        ChartSeries("below", flat),
        ChartSeries("above", flat, style="success"),
        y=Axis(0, 2),
    )
    styles = [STYLES[frame.styles[4, x]] for x in range(6, 36)]
    assert [(style, len([*cells])) for style, cells in groupby(styles)] == [
        ("success", 16),
        ("error", 2),
        ("success", 12),
    ]


def through(options: ChartOptions, *series: ChartSeries, columns: int = 60, rows: int = 9) -> Frame:
    y = axis_of(series, None, options, rows=value_axis_rows(rows))
    steps = max(one.curve.end_step for one in series)
    return render(ChartView(columns, rows, Axis(0, steps), y, series, "loss", "waiting", options=options))


def test_a_power_is_straight_on_a_logarithmic_axis_and_what_has_none_is_a_counted_hole() -> None:
    values = [10.0 ** (2 - step / 10) for step in range(41)]
    values[20] = 0
    frame = through(ChartOptions(log=True), ChartSeries("loss", curve(*values)), columns=47)
    assert lines(frame) == [
        "loss (log) ── 0.0100   1 step hidden below 0.01",
        " 100 ┤⠒⠤⠤⣀⡀┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈",
        "     │    ⠈⠉⠒⠒⠤⢄⣀",
        "     │           ⠉⠉⠒⠢⠤⣀⣀",
        "   1 ┤┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈⠉⠁┈⠤⠤⣀⡀┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈",
        "     │                        ⠈⠉⠒⠒⠤⢄⣀",
        "     │                               ⠉⠉⠒⠢⠤⣀⣀",
        "0.01 └┬─────────┬─────────┬─────────┬───────⠉⠑⠂",
        "      0        10        20        30        40",
    ]


def test_the_raw_line_is_behind_the_smoothed_one_and_dimmer() -> None:
    noisy = ChartSeries("loss", curve(*np.random.default_rng(2).normal(1, 0.3, 60)))
    frame = through(ChartOptions(smoothing=0.9), noisy)
    drawn = (frame.characters >= 0x2800) & (frame.characters < 0x2900)
    styles = {STYLES[style] for style in frame.styles[drawn]}
    assert styles == {"primary", "primary-band"}
    plain = through(UNCHANGED, noisy)
    assert {STYLES[style] for style in plain.styles[(plain.characters >= 0x2800) & (plain.characters < 0x2900)]} == {
        "primary"
    }
    # The smoothed line is in one row or two of the plot from where it has seen some values on.
    rows = {
        row
        for row, column in zip(*drawn.nonzero(), strict=True)
        if column > 30 and STYLES[frame.styles[row, column]] == "primary"
    }
    assert len(rows) <= 3


def test_a_line_ends_where_it_leaves_a_clipped_plot_with_a_mark_at_the_edge() -> None:
    values = [1 + step % 3 for step in range(60)]
    values[40:43] = [50, 60, 50]
    assert lines(through(PLAIN, ChartSeries("loss", curve(*values)), columns=66)) == [
        "loss ── 3.0000                              3 steps hidden above 4",
        "   4 ┤┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈▲▲▲▲⡇┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈",
        "     │  ⡀  ⡀  ⡀  ⡀  ⡀  ⡀  ⡀  ⡀  ⡀  ⡀  ⡀  ⡀  ⡀⡇   ⡇⡀  ⡀  ⡀  ⡀  ⡀  ⡀",
        "     │ ⢰⢇ ⢰⢇ ⢰⢇ ⢰⢇ ⢰⢇ ⢰⢇ ⢰⢇ ⢰⢇ ⢰⢇ ⢰⢇ ⢰⢇ ⢰⢇ ⢰⢇⡇   ⣷⢇ ⢰⢇ ⢰⢇ ⢰⢇ ⢰⢇ ⢰⠁",
        "   2 ┤⢀⠇⢸⢀⠇⢸⢀⠇⢸⢀⠇⢸⢀⠇⢸⢀⠇⢸⢀⠇⢸⢀⠇⢸⢀⠇⢸⢀⠇⢸⢀⠇⢸⢀⠇⢸⢀⠇⢸⡇┈┈┈⠃⢸⢀⠇⢸⢀⠇⢸⢀⠇⢸⢀⠇⢸⢀⠇┈",
        "     │⡜ ⠈⡞ ⠈⡞ ⠈⡞ ⠈⡞ ⠈⡞ ⠈⡞ ⠈⡞ ⠈⡞ ⠈⡞ ⠈⡞ ⠈⡞ ⠈⡞ ⠈⡇    ⠈⡞ ⠈⡞ ⠈⡞ ⠈⡞ ⠈⡞",
        "     │",
        "   0 └┬─────────┬─────────┬─────────┬─────────┬─────────┬────────┬",
        "      0        10        20        30        40        50       60",
    ]


def test_a_range_of_magnitudes_is_drawn_on_a_logarithmic_axis_and_the_title_says_so() -> None:
    falling = [2.62 * 0.97**step + 0.05 for step in range(220)]
    points = tuple((22 * epoch + 21, falling[22 * epoch + 21]) for epoch in range(10))
    frame = through(
        PLAIN, ChartSeries("training", curve(*falling)), ChartSeries("validation", points=points, style="secondary")
    )
    assert lines(frame) == [
        "loss (log) ── training 0.0533  ━━ validation 0.0533",
        "     │",
        "     │⠉⠒⠢⠤⣀⣀",
        "   1 ┤┈┈┈┈┈⠉⠛⠳⠶⣤⣄⣀⡀┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈",
        "     │          ⠈⠉⠙⠛⠶⢦⣤⣄⣀⡀",
        "     │                 ⠈⠉⠙⠛⠳⠶⢦⣤⣄⣀⣀",
        " 0.1 ┤┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈⠈⠉⠉⠛⠛⠳⠶⠶⢦⣤⣤⣤⣄⣀⣀⣀⣀⣀⡀┈┈┈┈┈┈┈┈┈┈",
        "     └┬───────────┬───────────┬───────────┬⠈⠉⠉⠉⠉⠉⠙⠛⠛⠛⠛⠛⠛⠛⠛⠛⠛",
        "      0          50          100         150          200",
    ]


def test_validations_beyond_a_clipped_plot_are_counted_by_themselves() -> None:
    level = [1 + step % 2 / 10 for step in range(220)]
    level[7] = 9
    points = tuple((22 * epoch + 21, 8.0 if epoch == 5 else 1.0) for epoch in range(10))
    series = ChartSeries("training", curve(*level)), ChartSeries("validation", points=points, style="secondary")
    frame = through(PLAIN, *series, columns=110)
    assert lines(frame)[0].endswith("  1 step and 1 point hidden above 1.2")
    marks = [STYLES[frame.styles[1, column]] for column, sign in enumerate(frame.text(1)) if sign == "▲"]
    assert marks[0] == "primary"
    assert {*marks[1:]} == {"secondary"}  # as far as the line is above the plot


@pytest.mark.parametrize("options", [UNCHANGED, ChartOptions(log=False), ChartOptions(log=True, clip=False)])
@pytest.mark.parametrize("seed", range(30))
def test_nothing_is_drawn_where_nothing_was_measured(options: ChartOptions, seed: int) -> None:
    """Every dot is of a value, or between two neighbours; and every value that is not hidden has its dot."""
    rng = np.random.default_rng(seed)
    count, rows = int(rng.integers(2, 300)), int(rng.integers(4, 30))
    values = rng.lognormal(0, rng.uniform(0.1, 1.5), count) * 10.0 ** rng.integers(-3, 4)
    values[: count // 30] *= 50
    values[count // 2 : count // 2 + count // 99] *= 50
    values[rng.random(count) < 0.05] = GAP
    columns = 60 + 2 * count
    one = ChartSeries("loss", curve(*values))
    view = ChartView(
        columns,
        rows,
        Axis(0, count),
        axis_of((one,), None, options, rows=value_axis_rows(rows)),
        (one,),
        options=options,
    )
    frame, plot = render(view), plot_region(view)
    places = (1 - view.y.fraction(np.float32(values).astype(float))) * 4 * (plot.height - 1) + 1  # dots from the top
    beside = 1.5 * count / (2 * plot.width)  # steps: a value is in a column of dots, and reaches half way to the next
    for column in range(plot.width):
        middle = np.array([(2 * column + 0.5) / (2 * plot.width), (2 * column + 1.5) / (2 * plot.width)]) * count
        near = np.arange(math.floor(middle[0] - beside), math.ceil(middle[1] + beside) + 1)
        near = places[near[(near >= 0) & (near < count)]]
        for row in range(plot.height):
            pattern = int(frame.characters[plot.y + row, plot.x + column]) - 0x2800
            for dot in range(4) if 0 < pattern <= 0xFF else ():
                if pattern & (0x09, 0x12, 0x24, 0xC0)[dot]:
                    at = 4 * row + dot
                    assert np.nanmin(near) - 1 <= at <= np.nanmax(near) + 1
    if not options.clip:
        assert "hidden" not in frame.text(0)
        assert not {"▲", "▼"} & set("".join(lines(frame)))


def test_less_is_said_where_there_is_less_room() -> None:
    values = np.ones(100)
    values[::2], values[50] = 0.9, 40
    one = ChartSeries("loss", curve(*values))
    heads = [lines(through(PLAIN, one, columns=columns))[0] for columns in (60, 52, 40, 26, 15)]
    assert heads == [
        "loss ── 1.0000                      1 step hidden above 1.05",
        "loss ── 1.0000              1 step hidden above 1.05",
        "loss ── 1.0000  1 step hidden above 1.05",
        "loss ── 1.0000    1 hidden",
        "loss ── 1.0000",
    ]


def test_many_series_lose_their_lines_first_then_their_values_and_then_those_that_do_not_fit() -> None:
    many = [ChartSeries(name, curve(1, 2), style="success") for name in "abcdefgh"]
    assert (
        lines(picture(*many, columns=110))[0] == "loss" + "".join(f" ── {name} 2.0000 " for name in "abcdefgh").rstrip()
    )
    assert lines(picture(*many, columns=88))[0] == "loss" + "".join(f" {name} 2.0000 " for name in "abcdefgh").rstrip()
    assert lines(picture(*many, columns=60))[0] == "loss" + "".join(f" ── {name} " for name in "abcdefgh").rstrip()
    assert lines(picture(*many, columns=41))[0] == "loss ── a  ── b  ── c  ── d  ── e  +3"
    assert lines(picture(*many, columns=6))[0] == "loss"


def test_labels_count_what_the_scale_does_and_say_what_that_is() -> None:
    frame = render(ChartView(40, 9, Axis(0, 20), Axis(0, 2), (FALLING,), "loss", scale=epochs([], 5)))
    assert lines(frame)[-2:] == [
        "   0 └┬────────────────┬───────────────┬",
        "epoch 0                2               4",
    ]


def tinted(*series: ChartSeries, columns: int = 60, rows: int = 9) -> Frame:
    x = Axis(0, max(one.curve.end_step for one in series))
    return render(ChartView(columns, rows, x, Axis(0, 2), series, "loss", has_tints=True, has_end_values=True))


def tints(frame: Frame, column: int) -> list[str]:
    """What is behind the rows of a column, from the top; the header and what is below the axis are left out."""
    names = [CELL_STYLES[style].partition(" on ")[2] for style in frame.styles[1:-1, column]]
    return [
        name if sign != " " else "" for name, sign in zip(names, map(chr, frame.characters[1:-1, column]), strict=True)
    ]


def test_the_area_below_a_line_is_tinted_and_the_axis_is_not() -> None:
    frame = tinted(ChartSeries("loss", curve(*[1.0] * 20), style="loss"))
    assert tints(frame, 20) == ["", "", "", "loss-area", "loss-area", "loss-area", ""]  # the line is in an upper half
    assert "┈" not in frame.text(5)
    assert frame.text(5)[6:58].strip("⠀") == " " * 12  # blank dots, so that the tint shows
    assert [style for _, style in frame.runs(5)][1:] == ["title on loss-area", "title"]


def test_the_range_of_the_values_of_a_dot_is_tinted_where_it_fills_a_cell() -> None:
    frame = tinted(ChartSeries("loss", curve(*[0.2, 1.9] * 1000), style="loss"))
    assert tints(frame, 20) == ["", *["loss-range"] * 5, ""]
    assert STYLES[frame.styles[1, 20] % len(STYLES)] == "loss-range"  # a part of the cell
    assert frame.text(1)[20] == "▄"
    assert STYLES[frame.styles[4, 20] % len(STYLES)] == "loss"


def test_of_several_curves_no_area_hides_another() -> None:
    frame = tinted(
        ChartSeries("a", curve(*[1.0] * 20), style="loss"), ChartSeries("b", curve(*[0.5] * 20), style="metric")
    )
    assert tints(frame, 20) == [""] * 7


def test_a_validation_keeps_the_tint_behind_it() -> None:
    validation = ChartSeries("validation", points=((0, 0.4), (19, 0.4)), style="loss-light")
    frame = tinted(ChartSeries("loss", curve(*[1.0] * 20), style="loss"), validation)
    row = next(row for row in range(1, 8) if STYLES[frame.styles[row, 8] % len(STYLES)] == "loss-light")
    assert CELL_STYLES[frame.styles[row, 8]] == "loss-light on loss-area"


def test_last_values_stand_at_the_right_and_of_two_at_one_height_the_lower_one_moves() -> None:
    validation = ChartSeries("validation", points=((0, 1.9), (10, 1.01)), style="loss-light")
    frame = tinted(ChartSeries("loss", curve(*[2 - step / 19 for step in range(20)]), style="loss"), validation)
    assert [frame.text(row)[48:].strip() for row in range(1, 8)] == ["", "", "", "1.0100 val", "1.0000", "", ""]
    assert "1.0000" not in tinted(ChartSeries("loss", curve(*[1.0] * 20)), columns=40).text(4)  # no room
    mean = ChartSeries("mean", curve(*[1.0] * 20), value=0.5)
    assert not tinted(mean).text(4)[52:].strip()  # the header has another value than the line's end


def test_the_best_value_is_marked_at_its_height() -> None:
    validation = ChartSeries("validation", points=((0, 1.5), (10, 0.5), (19, 1.0)))
    view = ChartView(40, 9, Axis(0, 20), Axis(0, 2), (validation,), "loss", best=(10, 0.5))
    assert [text.find("★") for text in lines(render(view))].index(6 + 17) == 5 + 1 - 1
    assert "★" not in "".join(lines(render(replace(view, best=(30, 0.5)))))


def test_a_chart_above_another_leaves_the_labels_of_the_steps_to_it() -> None:
    view = ChartView(40, 9, Axis(0, 20), Axis(0, 2), (FALLING,), "loss", has_step_labels=False)
    text = lines(render(view))
    assert text[1].startswith("   2 ┤")
    assert text[8].startswith("   0 └┬")
    with_labels = lines(render(replace(view, has_step_labels=True)))
    assert with_labels[7].startswith("   0 └┬")
    assert with_labels[8].split() == ["0", "10", "20"]


def test_charts_below_one_another_have_the_same_steps_in_the_same_columns() -> None:
    training = ChartSeries("training", curve(1.0, 0.5))
    rows = ((training,), (training, VALIDATIONS), (training,) * 9)
    plots = {plot_region(ChartView(60, 9, Axis(0, 20), Axis(0, 2), each, has_end_values=True)) for each in rows}
    assert len(plots) == 1


def test_names_stand_at_the_ends_of_lines_in_their_order_and_arrows_where_a_line_is_not_seen() -> None:
    series = tuple(
        ChartSeries(name, curve(*[value] * 20), style="primary")
        for name, value in (("a", 1.0), ("b", 1.02), ("c", 0.98), ("d", 7.0), ("e", -5.0))
    )
    view = ChartView(60, 11, Axis(0, 20), Axis(0, 2), series, "t", has_end_values=True, has_end_names=True)
    ends = [
        line[60 - view.end_width + 1 :].strip() for line in lines(render(view))[1:-1] if len(line) > 60 - view.end_width
    ]
    assert [end for end in ends if end] == ["▲d 7.0000", "b 1.0200", "a 1.0000", "c 0.9800", "▼e -5.0000"]


@pytest.mark.parametrize("is_alone", [True, False])
def test_several_curves_are_lines_without_the_ranges_that_one_has(is_alone: bool) -> None:
    noise = np.random.default_rng(3).normal(1, 0.2, 4000)
    series = [ChartSeries("a", curve(*noise)), ChartSeries("b", curve(*(noise + 0.3)), style="secondary")]
    shown = series[:1] if is_alone else series
    view = ChartView(40, 12, step_axis(4000), Axis(0, 2), tuple(shown), "loss", "", has_tints=False)
    frame = render(view)
    styles = {STYLES[number % len(STYLES)] for number in frame.styles[frame.characters >= 0x2800]}
    assert ("primary-band" in styles) is is_alone
    assert {each.style for each in shown} <= styles
