"""What happened, on the line below a plot."""

import numpy as np
import pytest

from accel_tui.run_state.curve import RecordedCurve
from accel_tui.run_state.marks import MAX_MARKS, MarkKind, Track
from accel_tui.widgets.chart.axes import Axis
from accel_tui.widgets.chart.background import GLYPHS, mark_legend
from accel_tui.widgets.chart.cell_frame import STYLES, Frame
from accel_tui.widgets.chart.chart import render
from accel_tui.widgets.chart.chart_view import ChartSeries, ChartView

CURVE = RecordedCurve().extend(np.linspace(2, 1, 200, dtype=np.float32))

WHOLE = Axis(0, 200)


def track(*steps: int) -> Track:
    return Track().extended(steps)


def picture(
    marks: dict[MarkKind, Track], *, columns: int = 56, x: Axis = WHOLE, shows_mark_legend: bool = False
) -> Frame:
    view = ChartView(
        columns,
        9,
        x,
        Axis(0, 2),
        (ChartSeries("loss", CURVE),),
        "loss",
        marks=marks,
        shows_mark_legend=shows_mark_legend,
    )
    return render(view)


def line(frame: Frame) -> str:
    return frame.text(len(frame.characters) - 2)


def test_each_kind_has_a_shape_of_its_own() -> None:
    assert len(set(GLYPHS.values())) == len(GLYPHS) == len(MarkKind)
    marks = {kind: track(20 + 16 * place) for place, kind in enumerate(MarkKind)}
    drawn = line(picture(marks))
    assert [character for character in drawn if character in GLYPHS.values()] == [GLYPHS[kind] for kind in MarkKind]


def test_marks_are_where_it_happened() -> None:
    drawn = line(picture({MarkKind.CHECKPOINT: track(50, 150, 200)}))
    assert [place for place, character in enumerate(drawn) if character == "◆"] == [6 + 12, 6 + 37, 55]


def test_two_at_one_place_are_beside_one_another() -> None:
    assert "┴◆" in line(picture({MarkKind.EPOCH: track(30), MarkKind.CHECKPOINT: track(30)}))
    assert line(picture({MarkKind.EPOCH: track(0)}))[6] == "┼"  # where there is a tick


def test_an_epoch_and_the_validation_that_ended_it_are_one_sign() -> None:
    marks = {
        MarkKind.EPOCH: track(60, 120),
        MarkKind.VALIDATION: track(60, 90, 120),
        MarkKind.CHECKPOINT: track(60, 120),
    }
    assert [character for character in line(picture(marks)) if character not in " 0└─┬"] == list("┻◆●┻◆")
    assert mark_legend(marks, WHOLE, 50)[-1] == "┻ epoch, validation  ● validation  ◆ checkpoint"
    every = {kind: track(*range(2, 202, 2)) for kind in (MarkKind.EPOCH, MarkKind.VALIDATION)}
    assert mark_legend(every, WHOLE, 50)[-1] == "┻ = 20 epochs, validation"
    assert "╋" in line(picture({MarkKind.EPOCH: track(0), MarkKind.VALIDATION: track(0)}))  # where there is a tick


def test_a_line_goes_up_from_what_is_rare_and_leaves_curves_alone() -> None:
    frame = picture({MarkKind.PAUSED: track(100), MarkKind.EPOCH: track(60)})
    above = [chr(frame.characters[row, 31]) for row in range(1, 7)]
    assert above.count("┊") == 5
    assert {STYLES[frame.styles[row, 31]] for row in range(1, 7)} == {"axis", "primary"}
    assert all(chr(frame.characters[row, 21]) != "┊" for row in range(1, 7))


@pytest.mark.parametrize(("events", "stride"), [(6, 1), (7, 2), (13, 5), (60, 10), (61, 20)])
def test_of_many_events_only_some_are_drawn(events: int, stride: int) -> None:
    marks = {MarkKind.EPOCH: track(*(200 * number // events for number in range(1, events + 1)))}
    drawn = line(picture(marks))
    assert sum(character in "┴┼" for character in drawn) == events // stride
    describe_hidden = mark_legend(marks, Axis(0, 200), 50)[-1]
    assert describe_hidden == ("┴ epoch" if stride == 1 else f"┴ = {stride} epochs")


def test_a_closer_look_shows_more_of_them() -> None:
    marks = {MarkKind.EPOCH: track(*range(2, 202, 2))}
    assert mark_legend(marks, Axis(0, 200), 50)[-1] == "┴ = 20 epochs"
    assert mark_legend(marks, Axis(101, 111), 50)[-1] == "┴ epoch"


def test_thinned_tracks_are_drawn_at_their_own_numbers() -> None:
    marks = {MarkKind.CHECKPOINT: track(*range(1, 3 * MAX_MARKS))}
    assert marks[MarkKind.CHECKPOINT].stride == 4
    whole = Axis(0, 3 * MAX_MARKS)
    stride = int(mark_legend(marks, whole, 80)[-1].split()[2])
    assert stride % 4 == 0
    assert 3 * MAX_MARKS / stride <= 10


def test_meanings_are_told_as_far_as_there_is_room_the_rarest_first() -> None:
    marks = {MarkKind.EPOCH: track(50, 100), MarkKind.CHECKPOINT: track(100), MarkKind.PAUSED: track(120)}
    assert picture(marks, shows_mark_legend=True).text(0).rstrip().endswith("┴ epoch  ◆ checkpoint  ║ pause")
    assert picture(marks, columns=46, shows_mark_legend=True).text(0).rstrip().endswith("  ◆ checkpoint  ║ pause")
    assert "pause" not in picture(marks).text(0)


def test_what_happens_once_is_told_rather_than_what_happens_often() -> None:
    marks = {MarkKind.CHECKPOINT: track(100), MarkKind.MICRO_BATCHES: track(100)}
    assert "◆÷" in line(picture(marks))
    assert mark_legend(marks, WHOLE, 50) == ["÷ micro-batches", "◆ checkpoint  ÷ micro-batches"]


def test_what_is_not_in_the_window_is_not_drawn() -> None:
    marks = {MarkKind.EPOCH: track(50, 100)}
    assert "┴" not in line(picture(marks, x=Axis(110, 160)))
    assert mark_legend(marks, Axis(110, 160), 50) == []
