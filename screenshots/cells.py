"""Converts the app's screen, or a terminal's, to cells for an SVG."""

from collections.abc import Iterable, Sequence

from pyte.screens import Char
from rich.cells import cell_len
from rich.color import ColorType
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import TerminalTheme

from svg import Look, Row

NAMES = ("black", "red", "green", "brown", "blue", "magenta", "cyan", "white")
"""pyte's names of the 8 standard colours; the bright ones have the prefix ``bright``."""

OWN = ("#2b333b", "#d9626b", "#8fb573", "#d9b65c", "#6b9ad8", "#b98bc9", "#5fb3b3", "#c8d0d8")
OWN_BRIGHT = ("#78838e", "#ee8890", "#a9cf8d", "#efd07f", "#8db7ee", "#d3a8e0", "#82d0d0", "#ffffff")
"""The terminal's palette in screenshots."""

COLOUR, GROUND = "#c8d0d8", "#14171a"
"""The terminal's default foreground and background."""

_TERMINAL = dict(zip((*NAMES, *(f"bright{name}" for name in NAMES)), (*OWN, *OWN_BRIGHT), strict=True))


def of_screen(lines: Iterable[Iterable[Segment]]) -> list[Row]:
    """Convert Textual's segments."""
    return [[cell for segment in line for cell in _segment_cells(segment)] for line in lines]


def of_terminal(lines: Iterable[Sequence[Char]]) -> list[Row]:
    """Convert pyte's characters."""
    return [[(cell.data or " ", _pyte_look(cell)) for cell in line] for line in lines]


def _segment_cells(segment: Segment) -> Iterable[tuple[str, Look]]:
    look = _rich_look(segment.style or Style())
    for character in segment.text:
        yield character, look
        if cell_len(character) == 2:
            yield " ", look


def _rich_look(style: Style) -> Look:
    colour, ground = _hex(style, COLOUR, foreground=True), _hex(style, GROUND, foreground=False)
    if style.reverse:
        colour, ground = ground, colour
    if style.dim:
        colour = _between(colour, ground)
    return Look(colour, ground, bool(style.bold), bool(style.underline))


def _hex(style: Style, default: str, *, foreground: bool) -> str:
    colour = style.color if foreground else style.bgcolor
    if colour is None or colour.type is ColorType.DEFAULT:
        return default
    return colour.get_truecolor(_THEME, foreground=foreground).hex


def _pyte_look(cell: Char) -> Look:
    colour, ground = _pyte_hex(cell.fg, COLOUR), _pyte_hex(cell.bg, GROUND)
    if cell.reverse:
        colour, ground = ground, colour
    return Look(colour, ground, cell.bold, cell.underscore)


def _pyte_hex(name: str, default: str) -> str:
    return default if name == "default" else _TERMINAL.get(name) or f"#{name}"


def _between(one: str, other: str) -> str:
    pairs = zip(_triplet(one), _triplet(other), strict=True)
    return "#" + "".join(f"{(a + b) // 2:02x}" for a, b in pairs)


def _triplet(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour.removeprefix("#")))


_THEME = TerminalTheme(
    _triplet(GROUND), _triplet(COLOUR), [_triplet(each) for each in OWN], [_triplet(each) for each in OWN_BRIGHT]
)
