"""Keeps the terminal's cells, and writes the shortest sequences that turn them into the next frame."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby, repeat
from operator import is_not, itemgetter
from typing import Self

from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from accel_engine.text import is_printable

_SINGLE_CELL = re.compile(r"[ -~\u00a0-\u00ac\u00ae-\u02ff\u2500-\u259f\u2800-\u28ff]*")
"""Characters that are certainly one cell wide: Latin, box drawing, blocks, braille."""

_SGR = re.compile(r"\x1b\[([\d;]*)m")
_RESET = "\x1b[0m"
_ATTRIBUTE_END = {"1": "22", "2": "22", "3": "23", "4": "24", "5": "25", "7": "27", "8": "28", "9": "29"}
"""The code that ends an attribute, by the code that begins it (ECMA-48, 8.3.117)."""

_INVISIBLE_ON_BLANK = frozenset("12358")
"""Attributes without effect on a blank: bold, dim, italic, blinking, hidden."""

_CHANGES = re.compile(b"\1+")

_LONGEST_JUMP = 4
"""Bytes; up to this many unchanged cells are rewritten instead of moving the cursor."""


@dataclass(frozen=True, slots=True, eq=False)
class _CellStyle:
    """A style as escape codes. Interned, so that styles are compared by identity."""

    attributes: tuple[str, ...] = ()
    """Codes of attributes other than colours."""
    colour: str = ""
    """Codes of the foreground; empty for the terminal's default."""
    background: str = ""
    """Codes of the background."""
    wrapper: tuple[str, str] | None = None
    """Text before and after the cell, e.g. of a link."""
    blank: Self | None = None
    """The style that a blank may be written with instead."""
    cells: "_Cells" = field(init=False)
    """The cells written with it, by their text."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", _Cells(self))


_Cell = tuple[str, _CellStyle]  # a wide character is in its first cell; the text of its second cell is empty


class _Cells(dict[str, _Cell]):
    """The cells of a style. Interned, which saves memory, and lets cells be compared by identity."""

    def __init__(self, cell_style: _CellStyle) -> None:
        super().__init__()
        self._cell_style = cell_style

    def __missing__(self, text: str) -> _Cell:
        cell_style = (self._cell_style.blank or self._cell_style) if text == " " else self._cell_style
        self[text] = (text, cell_style) if cell_style is self._cell_style else cell_style.cells[text]
        return self[text]


class Canvas:
    """The known cells of the terminal; repainting unchanged cells writes nothing."""

    def __init__(self) -> None:
        self.transliterate: Callable[[str], str] | None = None
        """Replaces characters that the terminal lacks by ones of the same width; ``None`` where it has all."""
        self._rows: dict[int, list[_Cell | None]] = {}
        self._cell_styles: dict[Style | None, _CellStyle] = {}
        self._styles_by_sequence: dict[tuple[str, str], _CellStyle] = {}

    def clear(self) -> None:
        """Forget the terminal's content: it was cleared, resized, or written to by another program."""
        self._rows.clear()

    def paint(self, pieces: Iterable[tuple[int, int, Strip]], console: Console) -> str:
        """Paint strips.

        Args:
            pieces: Row, column of the first cell, and the strip.
            console: Renders styles.

        Returns:
            Escape sequences that update the terminal; they assume and leave its default style.
        """
        writer = _SequenceWriter()
        for y, x, strip in pieces:
            cells = self._cells(strip, console)
            row = self._rows.setdefault(y, [])
            end = x + len(cells)
            if len(row) < end:
                row.extend(repeat(None, end - len(row)))
            old = row[x:end]
            if old == cells:
                continue
            # Overwriting half of a wide character removes the other half.
            if x and old[0] and not old[0][0]:
                row[x - 1] = None
            if end < len(row) and (after := row[end]) and not after[0]:
                row[end] = None
            row[x:end] = cells
            _paint_changes(writer, y, x, old, cells)
        return writer.finish()

    def _cells(self, strip: Strip, console: Console) -> list[_Cell]:
        cells: list[_Cell] = []
        for text, style, control in strip:
            if control:
                continue
            if self.transliterate:
                text = self.transliterate(text)
            cell_style = self._cell_styles.get(style) or self._cell_style(style, console)
            if _SINGLE_CELL.fullmatch(text):
                cells += map(cell_style.cells.__getitem__, text)
            else:
                _add_wide_text(cells, text, cell_style)
        return cells

    def _cell_style(self, style: Style | None, console: Console) -> _CellStyle:
        if len(self._cell_styles) > 5000:  # styles also carry metadata of links, so that their number is unbounded
            self._cell_styles.clear()
        # Textual renders the style around a NUL, which no style contains.
        before, _, after = Strip([Segment("\0", style)]).render(console).partition("\0")
        if (before, after) not in self._styles_by_sequence:
            self._styles_by_sequence[before, after] = self._parse(before, after)
        self._cell_styles[style] = self._styles_by_sequence[before, after]
        return self._cell_styles[style]

    def _parse(self, before: str, after: str) -> _CellStyle:
        if (before, after) == ("", ""):
            return _DEFAULT
        codes = _SGR.fullmatch(before)
        if codes is None or after != _RESET:
            return _CellStyle(wrapper=(before, after))
        attributes, colours = _split(codes[1].split(";"))
        colour, background = colours.get(True, ""), colours.get(False, "")
        if not _INVISIBLE_ON_BLANK.issuperset(attributes):
            return _CellStyle(attributes, colour, background)
        if not attributes and not colour:
            return _CellStyle(background=background)
        # Through the same cache, so that styles of one background share their blank.
        key = (f"\x1b[{background}m", _RESET) if background else ("", "")
        blank = self._styles_by_sequence.setdefault(key, _CellStyle(background=background) if background else _DEFAULT)
        return _CellStyle(attributes, colour, background, blank=blank)


_DEFAULT = _CellStyle()
_TEXT, _PEN = itemgetter(0), itemgetter(1)


class _SequenceWriter:
    """Collects output, and tracks the cursor and the current style."""

    def __init__(self) -> None:
        self._written: list[str] = []
        self._cell_style = _DEFAULT
        self._at: tuple[int, int] | None = None

    def move(self, y: int, x: int, skipped: list[_Cell]) -> None:
        """Move to a cell; rewrites unchanged cells in between where that takes fewer bytes."""
        ahead = x - self._at[1] if self._at and self._at[0] == y else -1
        if ahead < 0:
            self._written.append(f"\x1b[{y + 1};{x + 1}H")
        elif ahead > _LONGEST_JUMP:
            self._written.append(f"\x1b[{ahead}C")
        elif ahead:
            skipped = skipped[-ahead:]
            text = "".join(map(_TEXT, skipped))
            cheap = len(skipped) == ahead and len(text.encode()) <= _LONGEST_JUMP and _SINGLE_CELL.fullmatch(text)
            on = self._cell_style
            if cheap and all(
                cell_style is on or (text == " " and cell_style is on.blank) for text, cell_style in skipped
            ):
                self._written.append(text)
            else:
                self._written.append(f"\x1b[{ahead}C" if ahead > 1 else "\x1b[C")
        self._at = (y, x)

    def write(self, cells: list[_Cell]) -> None:
        """Write cells at the cursor."""
        on, write = self._cell_style, self._written.append
        for cell_style, run in groupby(cells, _PEN):
            text = "".join(map(_TEXT, run))
            if cell_style is not on and not (cell_style is on.blank and not text.strip(" ")):
                write(_change(on, cell_style))
                on = cell_style
            if on.wrapper:
                write(text.join(on.wrapper))
                on = _DEFAULT
            else:
                write(text)
        self._cell_style = on
        text = "".join(map(_TEXT, cells))
        # Terminals disagree on the width of some characters: after one the cursor's position is uncertain.
        sure = self._at and len(text) == len(cells) and _SINGLE_CELL.fullmatch(text)
        self._at = (self._at[0], self._at[1] + len(cells)) if self._at and sure else None

    def finish(self) -> str:
        """Reset the style, and return the output."""
        if self._cell_style is not _DEFAULT:
            self._written.append(_RESET)
        return "".join(self._written)


def _paint_changes(writer: _SequenceWriter, y: int, x: int, old: list[_Cell | None], new: list[_Cell]) -> None:
    painted = 0
    for change in _CHANGES.finditer(bytes(map(is_not, old, new))):
        first, last = change.span()
        while first and not new[first][0]:
            first -= 1  # the second cell of a wide character is written with its first
        while last < len(new) and not new[last][0]:
            last += 1
        first = max(first, painted)
        if first < last:
            writer.move(y, x + first, new[painted:first])
            writer.write(new[first:last])
            painted = last


def _add_wide_text(cells: list[_Cell], text: str, cell_style: _CellStyle) -> None:
    for character in text:
        width = cell_len(character)
        if not is_printable(character):  # last check: a control character would reach the terminal
            cells += repeat(cell_style.cells["?"], width)
        elif width:
            cells.append(cell_style.cells[character])
            cells += repeat(cell_style.cells[""], width - 1)
        elif cells:  # an accent or a joiner belongs to the character before it
            last_index = len(cells) - 1
            while last_index and not cells[last_index][0]:
                last_index -= 1
            text, cell_style = cells[last_index]
            cells[last_index] = cell_style.cells[text + character]


def _split(codes: list[str]) -> tuple[tuple[str, ...], dict[bool, str]]:
    """Split codes into attributes and colours; the foreground's have the key True."""
    attributes: list[str] = []
    colours: dict[bool, str] = {}
    while codes:
        code, *codes = codes
        number = int(code or 0)
        if number in (38, 48):
            count = 2 if codes[0] == "5" else 4
            colours[number == 38] = ";".join((code, *codes[:count]))
            codes = codes[count:]
        elif number in (39, 49):
            continue  # the terminal's default, the same as no code
        elif number // 10 in (3, 9) or number // 10 in (4, 10):
            colours[number // 10 in (3, 9)] = code
        else:
            attributes.append(code)
    return tuple(attributes), colours


@lru_cache(maxsize=1024)
def _change(old: _CellStyle, new: _CellStyle) -> str:
    """The codes that change one style into another."""
    if new.wrapper:
        return _RESET if old is not _DEFAULT else ""
    gone = [code for code in old.attributes if code not in new.attributes]
    if any(code not in _ATTRIBUTE_END for code in gone) or (
        new.background == "" and new.colour == "" and not new.attributes
    ):
        return _join("0", *new.attributes, new.colour, new.background)
    codes = list(dict.fromkeys(_ATTRIBUTE_END[code] for code in gone))
    codes += new.attributes if gone else [code for code in new.attributes if code not in old.attributes]
    if new.colour != old.colour:
        codes.append(new.colour or "39")
    if new.background != old.background:
        codes.append(new.background or "49")
    return _join(*codes)


def _join(*codes: str) -> str:
    return f"\x1b[{';'.join(code for code in codes if code)}m"
