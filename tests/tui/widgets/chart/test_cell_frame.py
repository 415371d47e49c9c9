"""Pictures, their pieces, and how two of them differ."""

import numpy as np
from textual.geometry import Region

from accel_tui.widgets.chart.cell_frame import CELL_STYLES, Frame, changed_cells


def test_text_is_cut_at_the_edges() -> None:
    frame = Frame.blank(5, 1)
    frame.write(3, 0, "abc", "title")
    frame.write(0, 1, "lost", "title")
    assert frame.text(0) == "   ab"


def test_runs_are_as_long_as_one_style_lasts() -> None:
    frame = Frame.blank(12, 2)
    frame.write(1, 0, "ab", "title")
    frame.write(4, 0, "cd", "title")
    frame.write(7, 0, "ef", "note")
    assert frame.runs(0) == [(" ab cd ", "title"), ("ef   ", "note")]
    assert ["".join(text for text, _ in frame.runs(row)) for row in range(2)] == [" ab cd ef   ", " " * 12]


def test_a_part_is_drawn_on_the_whole_and_a_copy_is_not() -> None:
    frame = Frame.blank(6, 2)
    frame.copy().write(0, 0, "no", "title")
    frame.part(2, 1, 3, 1).write(0, 0, "yes!", "title")
    assert [frame.text(row) for row in range(2)] == ["      ", "  yes "]


def test_equal_pictures_have_no_damage() -> None:
    frame = Frame.blank(30, 3)
    assert changed_cells(frame, frame.copy()) == []


def test_damage_is_merged_when_near_and_apart_when_far() -> None:
    old = Frame.blank(40, 3)
    new = old.copy()
    new.write(3, 1, "x", "note")
    new.write(6, 1, "x", "note")
    new.write(30, 1, "xy", "note")
    new.write(0, 2, "x", "note")
    assert changed_cells(old, new) == [Region(3, 1, 4, 1), Region(30, 1, 2, 1), Region(0, 2, 1, 1)]


def test_an_upright_line_is_damage_in_one_piece() -> None:
    old = Frame.blank(40, 5)
    new = old.copy()
    for y in (0, 1, 2, 4):
        new.write(3, y, "x", "note")
        new.write(30, y, "x", "note")
    assert changed_cells(old, new) == [Region(3, 0, 1, 3), Region(30, 0, 1, 3), Region(3, 4, 1, 1), Region(30, 4, 1, 1)]


def test_another_colour_is_damage_but_not_of_a_space() -> None:
    old = Frame.blank(10, 1)
    old.write(2, 0, "ab", "note")
    new = Frame(old.characters.copy(), np.full_like(old.styles, 2))
    assert changed_cells(old, new) == [Region(2, 0, 2, 1)]


def test_a_line_is_written_anew_and_lost_where_there_is_none() -> None:
    frame = Frame.blank(8, 1)
    frame.write(0, 0, "loss 12", "note")
    frame.write_line(0, [("loss", "title"), (" 9", "note")])
    assert frame.text(0) == "loss 9  "
    Frame.blank(0, 0).write_line(0, [("loss", "title")])


def test_what_is_drawn_over_a_cell_that_is_half_tinted_has_the_tint_behind_it() -> None:
    frame = Frame.blank(3, 1)
    for x, part in enumerate("▄▘█"):
        frame.write(x, 0, part, "loss-range" if part != "█" else "loss")
    frame.cover(np.ones((1, 3), np.bool_), "metric")
    assert [CELL_STYLES[style] for style in frame.styles[0]] == ["metric on loss-range", "metric", "metric"]
