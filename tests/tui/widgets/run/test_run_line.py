"""Lines that are painted only where they change."""

from itertools import zip_longest
from random import Random

import pytest
from textual.app import App, ComposeResult
from textual.content import Content
from textual.geometry import Region
from textual.widgets import Static

from accel_tui.run_state.state import RunState
from accel_tui.widgets.run.run_view import RunLine
from accel_tui.widgets.styled_text import TextSpan, changed_range

OLD: list[TextSpan] = [("ab", ""), ("12", "x"), ("cd", "")]


@pytest.mark.parametrize(
    ("new", "cells"),
    [
        (OLD, (0, 0)),
        ([("ab", ""), ("13", "x"), ("cd", "")], (2, 4)),
        ([("ab", ""), ("12", "y"), ("cd", "")], (2, 4)),
        ([("ab", ""), ("123", "x"), ("cd", "")], (2, 7)),
        ([("ab", ""), ("1", "x"), ("cde", "")], (2, 6)),
        ([("ab", ""), ("12", "x")], (4, 6)),
        ([("ab", ""), ("12", "x"), ("cd", ""), ("日本", "")], (6, 10)),
        ([("ab", ""), ("1", "x"), ("2", "y"), ("c", ""), ("e", "")], (2, 6)),
        ([("ab", ""), ("12cd", "x")], (2, 6)),
        ([], (0, 6)),
    ],
)
def test_what_changes_is_from_the_first_piece_that_does_to_the_last(
    new: list[TextSpan], cells: tuple[int, int]
) -> None:
    assert changed_range(OLD, new) == cells


def test_no_cell_is_left_as_it_was_that_should_be_another() -> None:
    def cells(spans: list[TextSpan]) -> list[tuple[str, str]]:
        return [(letter, style) for text, style in spans for letter in text]

    chance = Random(0)

    def line() -> list[TextSpan]:
        texts = ("".join(chance.choices("ab", k=chance.randrange(4))) for _ in range(chance.randrange(6)))
        return [(text, chance.choice("xy")) for text in texts]

    for _ in range(2000):
        old, new = line(), line()
        first, last = changed_range(old, new)
        kept = list(zip_longest(cells(old), cells(new)))
        assert all(before == now for before, now in (*kept[:first], *kept[last:])), (old, new)


PIECES: list[TextSpan] = [("● training", "bold $success"), ("   ", ""), ("step ", "$text-muted"), ("日本", "")]


class Line(RunLine):
    def spans(self, state: RunState) -> list[TextSpan]:
        return PIECES


class Stage(App[None]):
    CSS = "Static { padding: 0 1; }"

    def compose(self) -> ComposeResult:
        yield Line()
        yield Static(Content.assemble(*PIECES))


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light", "ansi-dark"])
async def test_it_looks_like_any_text(theme: str) -> None:
    app = Stage()
    async with app.run_test(size=(40, 5)) as pilot:
        app.theme = theme
        await pilot.pause()

        def cells(widget: RunLine | Static) -> list[tuple[str, object, object, object]]:
            strip = widget.render_lines(Region(0, 0, 40, 1))[0]
            styled = [(text, style) for text, style, _ in strip if style]
            return [(each, style.color, style.bgcolor, style.bold) for text, style in styled for each in text]

        line, text = (cells(app.query_one(kind)) for kind in (Line, Static))
        shown = [[cell if cell[0] != " " else cell[2] for cell in one] for one in (line, text)]
        assert shown[0] == shown[1]
        parts = app.query_one(Line).render_lines(Region(5, 0, 12, 1))
        assert parts[0].text == app.query_one(Static).render_lines(Region(5, 0, 12, 1))[0].text
