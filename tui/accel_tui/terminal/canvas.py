"""What stands on the terminal, cell by cell, and how to make it another picture with few bytes."""

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

_NARROW = re.compile(r"[ -~\u00a0-\u00ac\u00ae-\u02ff\u2500-\u259f\u2800-\u28ff]*")
"""Text of which every character surely takes one cell: Latin, boxes and blocks, braille."""

_SGR = re.compile(r"\x1b\[([\d;]*)m")
_RESET = "\x1b[0m"
_OFF = {"1": "22", "2": "22", "3": "23", "4": "24", "5": "25", "7": "27", "8": "28", "9": "29"}
"""What ends an attribute, by what begins it (ECMA-48, 8.3.117)."""

_UNSEEN = frozenset("12358")
"""Attributes that show on no blank: bold, dim, italic, blinking, hidden."""

_CHANGES = re.compile(b"\1+")

_LONGEST_JUMP = 4
"""Bytes; as many are sent again where the cursor would only skip them."""


@dataclass(frozen=True, slots=True, eq=False)
class _CellStyle:
    """A style, as a terminal takes it. There is one of each, so that they are compared by identity.

    Attributes:
        attributes: Codes of what is neither colour.
        colour: Codes of the colour of the text; empty for the terminal's own.
        background: Likewise of what is behind it.
        around: For what is no mere style, such as a link: what to write before and after the text.
        blank: The pen that a space may be written with in place of this one.
        cells: What was written with it, by the text.
    """

    attributes: tuple[str, ...] = ()
    colour: str = ""
    background: str = ""
    around: tuple[str, str] | None = None
    blank: Self | None = None
    cells: "_Cells" = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", _Cells(self))


_Cell = tuple[str, _CellStyle]  # a wide character stands in its first cell; the text of the second is empty


class _Cells(dict[str, _Cell]):
    """The cells of a pen: one of each, so that thousands of them in a frame are not made, and compared by identity."""

    def __init__(self, pen: _CellStyle) -> None:
        super().__init__()
        self._pen = pen

    def __missing__(self, text: str) -> _Cell:
        pen = (self._pen.blank or self._pen) if text == " " else self._pen
        self[text] = (text, pen) if pen is self._pen else pen.cells[text]
        return self[text]


class Canvas:
    """The picture on a terminal, as far as it is known; what is painted again as it is costs nothing."""

    def __init__(self) -> None:
        self.spell: Callable[[str], str] | None = None
        """Writes text in the characters that the terminal has, with as many cells; ``None`` where it has all."""
        self._rows: dict[int, list[_Cell | None]] = {}
        self._pens: dict[Style | None, _CellStyle] = {}
        self._known: dict[tuple[str, str], _CellStyle] = {}

    def forget(self) -> None:
        """Know nothing of the terminal any more: it was cleared, resized, or written on by another."""
        self._rows.clear()

    def paint(self, pieces: Iterable[tuple[int, int, Strip]], console: Console) -> str:
        """Put strips on the canvas.

        Args:
            pieces: Row and column of its first cell, and the strip.
            console: What renders styles.

        Returns:
            What changes the terminal accordingly: from any place of its cursor, with and to its default style.
        """
        brush = _Brush()
        for y, x, strip in pieces:
            cells = self._cells(strip, console)
            row = self._rows.setdefault(y, [])
            end = x + len(cells)
            if len(row) < end:
                row.extend(repeat(None, end - len(row)))
            old = row[x:end]
            if old == cells:
                continue
            # Half of a wide character does not stay when the other is overwritten.
            if x and old[0] and not old[0][0]:
                row[x - 1] = None
            if end < len(row) and (after := row[end]) and not after[0]:
                row[end] = None
            row[x:end] = cells
            _paint_changes(brush, y, x, old, cells)
        return brush.finish()

    def _cells(self, strip: Strip, console: Console) -> list[_Cell]:
        cells: list[_Cell] = []
        for text, style, control in strip:
            if control:
                continue
            if self.spell:
                text = self.spell(text)
            pen = self._pens.get(style) or self._pen(style, console)
            if _NARROW.fullmatch(text):
                cells += map(pen.cells.__getitem__, text)
            else:
                _add_uneven(cells, text, pen)
        return cells

    def _pen(self, style: Style | None, console: Console) -> _CellStyle:
        if len(self._pens) > 5000:  # styles carry what was under the mouse, too: there is no end of them
            self._pens.clear()
        # Textual knows best how it renders a style; a NUL is in none.
        before, _, after = Strip([Segment("\0", style)]).render(console).partition("\0")
        if (before, after) not in self._known:
            self._known[before, after] = self._parse(before, after)
        self._pens[style] = self._known[before, after]
        return self._pens[style]

    def _parse(self, before: str, after: str) -> _CellStyle:
        if (before, after) == ("", ""):
            return _DEFAULT
        codes = _SGR.fullmatch(before)
        if codes is None or after != _RESET:
            return _CellStyle(around=(before, after))
        attributes, colours = _split(codes[1].split(";"))
        colour, background = colours.get(True, ""), colours.get(False, "")
        if not _UNSEEN.issuperset(attributes):
            return _CellStyle(attributes, colour, background)
        if not attributes and not colour:
            return _CellStyle(background=background)
        # Through the same door, so that all that share a background share the pen of blanks.
        key = (f"\x1b[{background}m", _RESET) if background else ("", "")
        blank = self._known.setdefault(key, _CellStyle(background=background) if background else _DEFAULT)
        return _CellStyle(attributes, colour, background, blank=blank)


_DEFAULT = _CellStyle()
_TEXT, _PEN = itemgetter(0), itemgetter(1)


class _Brush:
    """Collects what to write, and knows where the cursor is and which pen is on."""

    def __init__(self) -> None:
        self._written: list[str] = []
        self._pen = _DEFAULT
        self._at: tuple[int, int] | None = None

    def move(self, y: int, x: int, skipped: list[_Cell]) -> None:
        """Go to a cell: over these, when they are what is between it and the cursor and take fewer bytes."""
        ahead = x - self._at[1] if self._at and self._at[0] == y else -1
        if ahead < 0:
            self._written.append(f"\x1b[{y + 1};{x + 1}H")
        elif ahead > _LONGEST_JUMP:
            self._written.append(f"\x1b[{ahead}C")
        elif ahead:
            skipped = skipped[-ahead:]
            text = "".join(map(_TEXT, skipped))
            cheap = len(skipped) == ahead and len(text.encode()) <= _LONGEST_JUMP and _NARROW.fullmatch(text)
            on = self._pen
            if cheap and all(pen is on or (text == " " and pen is on.blank) for text, pen in skipped):
                self._written.append(text)
            else:
                self._written.append(f"\x1b[{ahead}C" if ahead > 1 else "\x1b[C")
        self._at = (y, x)

    def write(self, cells: list[_Cell]) -> None:
        """Write cells from where the cursor is."""
        on, write = self._pen, self._written.append
        for pen, run in groupby(cells, _PEN):
            text = "".join(map(_TEXT, run))
            if pen is not on and not (pen is on.blank and not text.strip(" ")):
                write(_change(on, pen))
                on = pen
            if on.around:
                write(text.join(on.around))
                on = _DEFAULT
            else:
                write(text)
        self._pen = on
        text = "".join(map(_TEXT, cells))
        # Terminals do not agree on the width of every character: after an uneven one the place is not sure.
        sure = self._at and len(text) == len(cells) and _NARROW.fullmatch(text)
        self._at = (self._at[0], self._at[1] + len(cells)) if self._at and sure else None

    def finish(self) -> str:
        """Take the pen off; all that is to be written."""
        if self._pen is not _DEFAULT:
            self._written.append(_RESET)
        return "".join(self._written)


def _paint_changes(brush: _Brush, y: int, x: int, old: list[_Cell | None], new: list[_Cell]) -> None:
    painted = 0
    for change in _CHANGES.finditer(bytes(map(is_not, old, new))):
        first, last = change.span()
        while first and not new[first][0]:
            first -= 1  # the second cell of a wide character comes with its first
        while last < len(new) and not new[last][0]:
            last += 1
        first = max(first, painted)
        if first < last:
            brush.move(y, x + first, new[painted:first])
            brush.write(new[first:last])
            painted = last


def _add_uneven(cells: list[_Cell], text: str, pen: _CellStyle) -> None:
    for character in text:
        width = cell_len(character)
        if not is_printable(character):  # the last place where that can be seen to: the terminal would obey it
            cells += repeat(pen.cells["?"], width)
        elif width:
            cells.append(pen.cells[character])
            cells += repeat(pen.cells[""], width - 1)
        elif cells:  # an accent or a joiner belongs to the character before it
            place = len(cells) - 1
            while place and not cells[place][0]:
                place -= 1
            text, pen = cells[place]
            cells[place] = pen.cells[text + character]


def _split(codes: list[str]) -> tuple[tuple[str, ...], dict[bool, str]]:
    """Tell attributes from colours, those of the text being under True."""
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
            continue  # the terminal's own, as where nothing is said
        elif number // 10 in (3, 9) or number // 10 in (4, 10):
            colours[number // 10 in (3, 9)] = code
        else:
            attributes.append(code)
    return tuple(attributes), colours


@lru_cache(maxsize=1024)
def _change(old: _CellStyle, new: _CellStyle) -> str:
    """What puts one pen on in place of another."""
    if new.around:
        return _RESET if old is not _DEFAULT else ""
    gone = [code for code in old.attributes if code not in new.attributes]
    if any(code not in _OFF for code in gone) or (new.background == "" and new.colour == "" and not new.attributes):
        return _join("0", *new.attributes, new.colour, new.background)
    codes = list(dict.fromkeys(_OFF[code] for code in gone))
    codes += new.attributes if gone else [code for code in new.attributes if code not in old.attributes]
    if new.colour != old.colour:
        codes.append(new.colour or "39")
    if new.background != old.background:
        codes.append(new.background or "49")
    return _join(*codes)


def _join(*codes: str) -> str:
    return f"\x1b[{';'.join(code for code in codes if code)}m"
