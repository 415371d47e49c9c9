"""Whatever a canvas leaves out, the terminal shows the same as if all had been sent."""

import random
from collections.abc import Iterable

from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.strip import Strip

from accel_tui.terminal.canvas import Canvas
from tui.terminal.emulator import Emulator

COLUMNS, ROWS = 30, 4
CONSOLE = Console(color_system="truecolor", force_terminal=True)
STYLES = [
    None,
    Style.parse("red"),
    Style.parse("bold #102030 on #405060"),
    Style.parse("#102030 on #405060"),
    Style.parse("#ff0000 on #405060"),
    Style.parse("on #405060"),
    Style.parse("underline"),
    Style.parse("reverse bright_blue"),
    Style.parse("bold italic strike on color(200)"),
    Style.parse("dim on bright_black"),
    Style.parse("blue link https://example.org"),
]
ALPHABET = ["a", "b", " ", " ", "⣿", "⡇", "─", "é", "日", "…", "e\u0301"]


def plain(strips_of: Iterable[tuple[int, int, Strip]]) -> str:
    """The same without a canvas."""
    return "".join(f"\x1b[{y + 1};{x + 1}H{strip.render(CONSOLE)}" for y, x, strip in strips_of)


def strip_of(*parts: tuple[str, Style | None]) -> Strip:
    return Strip([Segment(text, style) for text, style in parts])


def scribble(chance: random.Random, width: int) -> Strip:
    """Text of all kinds, of a width in cells."""
    parts = []
    while sum(part.cell_length for part in parts) < width:
        text = "".join(chance.choices(ALPHABET, k=chance.randint(1, 6)))
        parts.append(Segment(text, chance.choice(STYLES)))
    return Strip(parts).crop(0, width)


def test_a_terminal_shows_the_same_with_and_without_a_canvas() -> None:
    for seed in range(60):
        chance = random.Random(seed)
        canvas, ours, theirs = Canvas(), Emulator(Size(COLUMNS, ROWS)), Emulator(Size(COLUMNS, ROWS))
        shown = {(y, 0): scribble(chance, COLUMNS) for y in range(ROWS)}
        for _ in range(12):
            strips_of = [(y, x, strip) for (y, x), strip in shown.items()]
            ours.feed(canvas.paint(strips_of, CONSOLE))
            theirs.feed(plain(strips_of))
            assert ours.picture() == theirs.picture(), seed
            y, x = chance.randrange(ROWS), chance.randrange(COLUMNS)
            shown = {(y, 0): scribble(chance, COLUMNS)}
            if chance.random() < 0.7:  # only a part of a row, with what is left of it as it was
                shown = {(y, x): scribble(chance, chance.randint(1, COLUMNS - x))}


def test_what_is_there_already_is_not_sent() -> None:
    canvas = Canvas()
    red = Style.parse("red")
    row = [(2, 5, strip_of(("loss 0.25", red)))]
    assert canvas.paint(row, CONSOLE) == "\x1b[3;6H\x1b[31mloss 0.25\x1b[0m"
    assert canvas.paint(row, CONSOLE) == ""
    assert canvas.paint([(2, 5, strip_of(("loss 0.21", red)))], CONSOLE) == "\x1b[3;14H\x1b[31m1\x1b[0m"


def test_only_what_differs_between_styles_is_sent() -> None:
    on = "on #010203"
    parts = [("a", Style.parse(f"red {on}")), ("b", Style.parse(f"blue {on}")), ("c", Style.parse(f"bold blue {on}"))]
    written = Canvas().paint([(0, 0, strip_of(*parts))], CONSOLE)
    assert written == "\x1b[1;1H\x1b[31;48;2;1;2;3ma\x1b[34mb\x1b[1mc\x1b[0m"


def test_a_blank_needs_no_colour_of_its_own() -> None:
    red, blue, lined = Style.parse("red"), Style.parse("blue"), Style.parse("underline blue")
    canvas = Canvas()
    assert canvas.paint([(0, 0, strip_of(("a", red), ("  ", blue), ("b", red)))], CONSOLE) == (
        "\x1b[1;1H\x1b[31ma  b\x1b[0m"
    )
    assert canvas.paint([(0, 1, strip_of(("  ", red)))], CONSOLE) == ""
    assert canvas.paint([(0, 1, strip_of(("  ", lined)))], CONSOLE) != ""


def test_a_few_cells_between_two_changes_are_sent_again_and_many_are_skipped() -> None:
    canvas = Canvas()
    canvas.paint([(0, 0, strip_of(("abcdefghijkl", None)))], CONSOLE)
    assert canvas.paint([(0, 0, strip_of(("Abc", None)))], CONSOLE) == "\x1b[1;1HA"
    assert canvas.paint([(0, 0, strip_of(("abCdefghijkL", None)))], CONSOLE) == "\x1b[1;1HabC\x1b[8CL"


def test_after_forgetting_all_is_sent_again() -> None:
    canvas = Canvas()
    row = [(0, 0, strip_of(("abc", None)))]
    canvas.paint(row, CONSOLE)
    canvas.clear()
    assert canvas.paint(row, CONSOLE) == "\x1b[1;1Habc"


def test_half_of_a_wide_character_is_not_believed_to_be_there() -> None:
    canvas = Canvas()
    row = [(0, 0, strip_of(("日本", None)))]
    canvas.paint(row, CONSOLE)
    canvas.paint([(0, 1, strip_of(("xx", None)))], CONSOLE)  # over halves of both
    assert "日本" in canvas.paint(row, CONSOLE)


def test_an_endless_stream_of_styles_is_not_kept() -> None:
    canvas = Canvas()
    for number in range(12_000):
        canvas.paint([(0, 0, strip_of(("x", Style(color="red", meta={"offset": (number, 0)}))))], CONSOLE)
    assert len(canvas._cell_styles) <= 5001
