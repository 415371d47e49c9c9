"""Draws the cells of a terminal as an SVG that looks the same everywhere.

Letters are text in one of the viewer's fonts. Braille dots, blocks and box-drawing lines are drawn as shapes, as few
fonts have all of them in one width.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from typing import NamedTuple

WIDE, HIGH = 10, 20
"""Width and height of a cell in pixels."""

FONT = "font:16.6px 'DejaVu Sans Mono',Menlo,Consolas,monospace"

STYLE = (
    f"text{{{FONT};white-space:pre}}.b{{font-weight:bold}}.u{{text-decoration:underline}}"
    "path{fill:none;stroke-linecap:round}"
)
"""Style rules of all drawings."""

_DOTS = ((0x01, 0, 0), (0x02, 0, 1), (0x04, 0, 2), (0x40, 0, 3), (0x08, 1, 0), (0x10, 1, 1), (0x20, 1, 2), (0x80, 1, 3))
"""Braille: a bit of the character, its column and its row."""

_BLOCKS = {
    "█": (0, 0, 8, 8), "▀": (0, 0, 8, 4), "▔": (0, 0, 8, 1), "▌": (0, 0, 4, 8), "▐": (4, 0, 4, 8), "▎": (0, 0, 2, 8),
    "▏": (0, 0, 1, 8), "▍": (0, 0, 3, 8), "▋": (0, 0, 5, 8), "▊": (0, 0, 6, 8), "▉": (0, 0, 7, 8), "▕": (7, 0, 1, 8),
    "▘": (0, 0, 4, 4), "▝": (4, 0, 4, 4), "▖": (0, 4, 4, 4), "▗": (4, 4, 4, 4),
} | {block: (0, 8 - height, 8, height) for height, block in enumerate("▁▂▃▄▅▆▇", 1)}  # fmt: skip
"""Left, top, width and height, in eighths of the cell."""

_LINES = {
    "─": "lr", "│": "ud", "┌": "rd", "┐": "ld", "└": "ru", "┘": "lu", "├": "udr", "┤": "udl", "┬": "lrd", "┴": "lru",
    "┼": "udlr", "╷": "d", "╵": "u", "╴": "l", "╶": "r",
    "━": "LR", "╸": "L", "╺": "R", "┃": "UD", "╻": "D", "╹": "U",
}  # fmt: skip
"""Directions of lines from the middle of a cell; capitals are heavy lines."""

_CORNERS = {
    "╭": (5, 20, "v-6q0-4 4-4h1"),
    "╮": (0, 10, "h1q4 0 4 4v6"),
    "╰": (5, 0, "v6q0 4 4 4h1"),
    "╯": (0, 10, "h1q4 0 4-4v-6"),
}
"""Rounded corners: where they begin in a cell, and the way from there."""

_WAYS = {"l": "h-5", "r": "h5", "u": "v-10", "d": "v10"}


class Look(NamedTuple):
    """The style of a cell; colours as ``#rrggbb``."""

    colour: str
    ground: str
    bold: bool = False
    underlined: bool = False


Row = Sequence[tuple[str, Look]]
"""A row of cells: character and style of each."""


def draw(rows: Sequence[Row], ground: str) -> str:
    """Draw rows on a background colour."""
    wide, high = max(map(len, rows)) * WIDE, len(rows) * HIGH
    parts = [part for number, row in enumerate(rows) for part in draw_row(row, number * HIGH, ground)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-10 -10 {wide + 20} {high + 20}" width="{wide + 20}">'
        f"<style>{STYLE}</style>"
        f'<rect x="-10" y="-10" width="{wide + 20}" height="{high + 20}" fill="{ground}"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def draw_row(row: Row, top: int, ground: str) -> Iterator[str]:
    """The elements of a row whose upper edge is at ``top`` pixels, on a background colour."""
    for left, cells in _stretches(row, lambda _, look: look.ground):
        if cells[0][1].ground != ground:
            yield (
                f'<rect x="{left * WIDE}" y="{top}" width="{len(cells) * WIDE}" height="{HIGH}"'
                f' fill="{cells[0][1].ground}"/>'
            )
    for left, cells in _stretches(row, lambda character, look: (_kind(character), *look)):
        look = cells[0][1]
        kind = _kind(cells[0][0])
        if kind == "text":
            yield from _text("".join(character for character, _ in cells), look, left * WIDE, top)
        elif kind != "blocks" or look.colour != look.ground:
            places = ((character, (left + number) * WIDE, top) for number, (character, _) in enumerate(cells))
            yield _DRAWN[kind](places, look.colour)


def _stretches(row: Row, key: Callable[[str, Look], object]) -> Iterator[tuple[int, list[tuple[str, Look]]]]:
    """Neighbours that are alike in something, and the column of the first."""
    left = 0
    for _, group in itertools.groupby(row, lambda cell: key(*cell)):
        cells = list(group)
        yield left, cells
        left += len(cells)


def _kind(character: str) -> str:
    if 0x2800 <= ord(character or " ") < 0x2900:
        return "dots"
    return "blocks" if character in _BLOCKS else "lines" if character in _LINES or character in _CORNERS else "text"


def _text(words: str, look: Look, left: int, top: int) -> Iterator[str]:
    """Words that are far apart are placed each by itself, so that no font moves them."""
    classes = " ".join(name for name, on in (("b", look.bold), ("u", look.underlined)) if on)
    kind = f' class="{classes}"' if classes else ""
    for part, at in _apart(words) if not look.underlined else [(words, 0)]:
        size = f' textLength="{len(part) * WIDE}"' if len(part) > 1 else ""
        yield f'<text x="{left + at * WIDE}" y="{top + 15}" fill="{look.colour}"{kind}{size}>{escape(part)}</text>'


def _apart(words: str) -> Iterator[tuple[str, int]]:
    at = 0
    for part in words.split("  "):
        if shown := part.strip():
            yield shown, at + part.index(shown)
        at += len(part) + 2


def _dots(places: Iterable[tuple[str, int, int]], colour: str) -> str:
    drawn = "".join(
        f"M{left + 2 + 5 * column} {top + 3 + 5 * row}h0"
        for character, left, top in places
        for bit, column, row in _DOTS
        if ord(character) - 0x2800 & bit
    )
    return f'<path stroke="{colour}" stroke-width="3" d="{drawn}"/>'


def _blocks(places: Iterable[tuple[str, int, int]], colour: str) -> str:
    drawn = ""
    for character, group in itertools.groupby(places, lambda place: place[0]):
        cells = list(group)
        x, y, wide, high = _BLOCKS[character]
        whole = len(cells) if wide == 8 else 1  # those are drawn at once
        for _, left, top in cells[::whole]:
            right, down = whole * wide * WIDE / 8, high * HIGH / 8
            drawn += f"M{left + x * WIDE / 8:g} {top + y * HIGH / 8:g}h{right:g}v{down:g}h{-right:g}z"
    return f'<path style="fill:{colour}" d="{drawn}"/>'


def _lines(places: Iterable[tuple[str, int, int]], colour: str) -> str:
    drawn = {1: "", 3: ""}
    for character, left, top in places:
        if character in _CORNERS:
            x, y, way = _CORNERS[character]
            drawn[1] += f"M{left + x} {top + y}{way}"
            continue
        for way in _LINES[character]:
            drawn[3 if way.isupper() else 1] += f"M{left + 5} {top + 10}{_WAYS[way.lower()]}"
    return "".join(f'<path stroke="{colour}" stroke-width="{wide}" d="{way}"/>' for wide, way in drawn.items() if way)


_DRAWN = {"dots": _dots, "blocks": _blocks, "lines": _lines}
