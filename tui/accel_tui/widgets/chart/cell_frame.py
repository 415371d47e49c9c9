"""A chart's cells as two arrays, characters and styles, and the difference of two charts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import get_args

import numpy as np
import numpy.typing as npt
from textual.geometry import Region

from accel_tui.widgets.chart import raster
from accel_tui.widgets.chart.chart_view import MeasureColour, ThemeColour
from accel_tui.widgets.styled_text import TextSpan

COLOURS: tuple[str, ...] = (*get_args(ThemeColour), *get_args(MeasureColour))
STYLES = (
    "title",
    "note",
    "axis",
    "label",
    "grid",
    *COLOURS,
    *(f"{colour}-{kind}" for colour in COLOURS for kind in ("band", "area", "range")),
)
"""Styles of characters; a style's id is its index here."""

STYLE_ID = {name: number for number, name in enumerate(STYLES)}
"""Index of each style in :data:`STYLES`."""

TINTS = ("", *(f"{colour}-{tint}" for colour in COLOURS for tint in ("area", "range")))
"""What may be behind a character: nothing, the area below a curve, the range of its values."""

TINT_ID = {name: len(STYLES) * number for number, name in enumerate(TINTS)}
"""What is added to the id of a style for each tint."""

_ON = " on "
CELL_STYLES = tuple(f"{style}{_ON}{tint}" if tint else style for tint, style in product(TINTS, STYLES))
"""Styles of cells by the sum of the ids of style and tint."""

PARTS = np.frombuffer(" ▘▝▀▖▌▞▛▗▚▐▜▄▙▟█".encode("utf-32-le"), np.uint32)
"""Cells that are tinted in part, by the bits of their quarters: top left, top right, bottom left, bottom right."""

_HALVES = PARTS[np.bitwise_count(np.arange(len(PARTS))) >= 2]
_TINT_OF_STYLE = np.array([TINT_ID.get(name, 0) for name in STYLES], np.uint16)

_MERGE = 6  # cells; sending them again takes fewer bytes than moving the cursor and setting a colour


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """The cells of a chart."""

    characters: npt.NDArray[np.uint32]
    """Code points, shape ``[rows, columns]``."""
    styles: npt.NDArray[np.uint16]
    """Indices in :data:`CELL_STYLES`, of the same shape; meaningless for spaces."""

    @classmethod
    def blank(cls, columns: int, rows: int) -> "Frame":
        """A frame of spaces."""
        return cls(np.full((rows, columns), ord(" "), "<u4"), np.zeros((rows, columns), np.uint16))

    def copy(self) -> "Frame":
        """A copy to draw on."""
        return Frame(self.characters.copy(), self.styles.copy())

    def part(self, x: int, y: int, columns: int, rows: int) -> "Frame":
        """A rectangular view of this frame that shares its cells."""
        cells = (slice(y, y + rows), slice(x, x + columns))
        return Frame(self.characters[cells], self.styles[cells])

    def text(self, row: int) -> str:
        """The characters of a row."""
        return str(self.characters[row].tobytes(), "utf-32-le")

    def runs(
        self, row: int, first: int = 0, last: int | None = None, names: Sequence[str] = CELL_STYLES
    ) -> list[TextSpan]:
        """The cells of a row from ``first`` to before ``last`` as text spans with style names, of ``names``."""
        text = str(self.characters[row, first:last].tobytes(), "utf-32-le")
        found: list[TextSpan] = []
        start, style = 0, -1
        first_tinted = len(STYLES)
        for index, (character, number) in enumerate(zip(text, self.styles[row, first:last].tolist(), strict=True)):
            if character == " ":
                if style < first_tinted:
                    continue
                number = 0
            if number != style:
                if style >= 0:
                    found.append((text[start:index], names[style]))
                    start = index
                style = number
        return [*found, (text[start:], names[max(style, 0)])] if text else []

    def write(self, x: int, y: int, text: str, style: str) -> None:
        """Write text into a row, clipped to the frame."""
        text = text[: max(0, self.characters.shape[1] - x)]
        if text and 0 <= y < self.characters.shape[0]:
            self.characters[y, x : x + len(text)] = np.frombuffer(text.encode("utf-32-le"), "<u4")
            self.styles[y, x : x + len(text)] = STYLE_ID[style]

    def restyle(self, cells: npt.NDArray[np.bool_], style: str) -> None:
        """Give characters a style, and leave the tint behind them."""
        styles = self.styles[cells]
        self.styles[cells] = styles - styles % len(STYLES) + STYLE_ID[style]

    def cover(self, cells: npt.NDArray[np.bool_], style: str) -> None:
        """Give a style to cells whose characters are replaced next; a tint of at least half of one stays behind it."""
        is_half = cells & np.isin(self.characters, _HALVES)
        styles = self.styles[is_half] % len(STYLES)
        self.styles[is_half] = np.where(
            _TINT_OF_STYLE[styles] > 0, styles + _TINT_OF_STYLE[styles], self.styles[is_half]
        )
        self.restyle(cells, style)

    def tint(self, cells: npt.NDArray[np.bool_], tint: str) -> None:
        """Put a tint behind cells, in place of another one."""
        # A space has no style.
        self.characters[cells & (self.characters == ord(" "))] = raster.BLANK
        self.styles[cells] = self.styles[cells] % len(STYLES) + TINT_ID[tint]

    def write_line(self, y: int, pieces: Iterable[TextSpan]) -> None:
        """Replace a row by text."""
        self.characters[y : y + 1] = ord(" ")
        x = 0
        for text, style in pieces:
            self.write(x, y, text, style)
            x += len(text)


def changed_cells(old: Frame, new: Frame) -> list[Region]:
    """Regions that differ between two frames of one size: few, and disjoint in each row."""
    changed = (old.characters != new.characters) | ((old.styles != new.styles) & (new.characters != ord(" ")))
    rows, cells = changed.nonzero()
    if not rows.size:
        return []
    cuts = ((rows[1:] != rows[:-1]) | (cells[1:] - cells[:-1] > _MERGE)).nonzero()[0]
    firsts, lasts = [0, *(cuts + 1)], [*cuts, -1]
    regions: list[Region] = []
    above: dict[tuple[int, int], int] = {}
    for y, first, last in zip(rows[firsts].tolist(), cells[firsts].tolist(), cells[lasts].tolist(), strict=True):
        # A region right below another of the same columns, e.g. of a vertical line, is merged with it.
        index = above.get((first, last), -1)
        if index >= 0 and regions[index].bottom == y:
            regions[index] = regions[index].grow((0, 0, 1, 0))
        else:
            above[first, last] = len(regions)
            regions.append(Region(first, y, last - first + 1, 1))
    return regions


def style_and_tint(name: str) -> tuple[str, str]:
    """The style and the tint of a name in :data:`CELL_STYLES`; the tint may be empty."""
    style, _, tint = name.partition(_ON)
    return style, tint
