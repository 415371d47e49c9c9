"""Columns of tables: what they show of a row, by what they sort, and how wide they are."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Generic, TypeVar

from rich.cells import cell_len

from accel_engine.text import printable_line
from accel_tui.formatting.text import fit, shorten_middle

GAP = 2
"""Cells between two columns."""

ALL_ROOM = 1000
"""The widest that a column can be."""

KEPT = 4
"""The highest drop priority of columns that are not hidden for being empty."""

_LOOKED_AT = 500
"""Rows that tell which columns are empty: the event loop has no time for all of thousands."""

SortKey = tuple[float, str]
"""A number, then a text for equal numbers."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """A column of a table."""

    title: str
    """Its header."""
    width: int
    """Its width in cells."""
    text: Callable[[T, float], str]
    """Its cell of a row, given the present time."""
    sort_key: Callable[[T], SortKey | None] | None = None
    """The sort key of a row, ``None`` for a row without a value, which comes last; without this function, no order is
    by this column."""
    right: bool = False
    """Whether it is aligned to the right."""
    descending: bool = False
    """Whether its default order is descending."""
    colour: Callable[[T], str] = lambda _: ""
    """The theme colour of a row's cell; empty for none."""
    title_colour: str = ""
    """The theme colour of its header."""
    middle: bool = False
    """Whether a text that is too wide is cut in the middle, as names that begin alike are."""
    drop_priority: int = 0
    """The highest is hidden first where there is no room; 0 never."""
    only_chosen: bool = False
    """Whether it is shown only where the user has chosen it."""
    widest: int = 0
    """Cells to which it grows where there is room."""
    header: str | None = None
    """The text of the header in place of the title."""
    draw: Callable[[T, int], str] | None = None
    """Draws the cell of a row at a width in cells, in place of its text."""

    @property
    def heading(self) -> str:
        """The text of the header."""
        return self.title if self.header is None else self.header

    def has_value(self, row: T) -> bool:
        """Whether a row has a value in this column."""
        return self.sort_key is None or self.sort_key(row) is not None


@dataclass(frozen=True, slots=True)
class SortOrder:
    """The order of a table."""

    column: str = ""
    """The title of the column to sort by; empty for the order in which the rows are given."""
    reversed: bool = False
    """Whether to reverse the column's default order."""

    def by(self, column: str) -> "SortOrder":
        """Sort by a column; reverse the order if it is the present one."""
        return replace(self, reversed=not self.reversed) if column == self.column else SortOrder(column)

    def is_descending(self, column: Column[T]) -> bool:
        """Whether the highest value comes first when this column is sorted by."""
        return column.descending is not self.reversed


@dataclass(frozen=True, slots=True)
class DrawnColumn:
    """A column of bars or intervals, which a screen shows where there is room for it, and a command never."""

    after: str
    """The title of the column that it follows."""
    cells: Sequence[Callable[[int], str]]
    """Functions that draw the cell of each row at a width in cells."""
    title: str = ""
    """Its header."""
    colour: str = "primary"
    """The theme colour of its cells."""
    widest: int = ALL_ROOM
    """The most cells."""


@dataclass(frozen=True, slots=True)
class ResultTable:
    """A table of texts, as a command prints it and a screen shows it."""

    header: tuple[str, ...]
    """The titles of its columns."""
    rows: Sequence[tuple[str, ...]]
    """The texts of each row, one per column."""
    title: str = ""
    """The text above it; empty for none."""
    note: str = ""
    """The text below it; empty for none."""
    colour: str = ""
    """The theme colour of its texts; empty for the usual one."""
    drawn: tuple[DrawnColumn, ...] = ()
    """The columns that are drawn beside its texts."""
    named: tuple[str, ...] = ()
    """The titles that are names which users gave."""
    optional: tuple[str, ...] = ()
    """The titles of columns that a screen hides where there is no room, the last first, and where they are empty."""

    def shown_title(self, title: str) -> str:
        """A title as a screen shows it: small letters, but names and units as they are."""
        return title.lower() if title.isupper() and title not in self.named else title


def sort_rows(rows: Iterable[T], columns: Sequence[Column[T]], order: SortOrder) -> tuple[T, ...]:
    """Sort rows; the sort is stable, and rows without a value come last."""
    column = next((each for each in columns if each.title == order.column), None)
    if column is None or column.sort_key is None:
        return tuple(rows)
    keyed = [(column.sort_key(row), row) for row in rows]
    known = [(key, row) for key, row in keyed if key is not None]
    known.sort(key=lambda pair: pair[0], reverse=order.is_descending(column))
    return (*(row for _, row in known), *(row for key, row in keyed if key is None))


def fitting_columns(columns: Sequence[Column[T]], room: int, rows: Sequence[T] = ()) -> list[Column[T]]:
    """The columns that fit, in order; optional ones without a value are hidden first.

    Args:
        columns: All columns.
        room: The available width in cells.
        rows: The rows of the table.
    """
    optional = [column for column in columns if column.drop_priority > KEPT]
    empty = {each.title for each in optional if rows and not any(map(each.has_value, rows[:_LOOKED_AT]))}
    chosen, room = set[int](), room + GAP
    for column in sorted(columns, key=lambda column: (column.title in empty, column.drop_priority)):
        room -= column.width + GAP
        if room < 0:
            break
        chosen.add(id(column))  # several may have no title
    return [column for column in columns if id(column) in chosen]


def column_widths(columns: Sequence[Column[T]], room: int) -> list[int]:
    """The widths of columns in cells. Those that grow share what is left, those first that would be hidden last."""
    spare = max(0, room + GAP - sum(column.width + GAP for column in columns))
    found = [column.width for column in columns]

    def turn(at: int) -> tuple[bool, int]:
        return columns[at].widest == ALL_ROOM, columns[at].drop_priority

    for _, equal in groupby(sorted(range(len(columns)), key=turn), turn):
        growing = sorted((max(0, columns[at].widest - columns[at].width), at) for at in equal)
        for placed, (most, at) in enumerate(growing):
            found[at] += min(most, spare // (len(growing) - placed))
            spare -= found[at] - columns[at].width
    return found


def line_cells(columns: Sequence[tuple[Column[T], int]], cells: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """A line of a table: the text of each column at its width, with the gap after it, and its colour.

    The last text has the room of the empty columns after it.

    Args:
        columns: With their widths in cells.
        cells: A text and a colour for each column.
    """
    last = max((at for at, (text, _) in enumerate(cells) if text), default=len(columns) - 1)
    for at, ((column, width), (text, colour)) in enumerate(zip(columns, cells, strict=True)):
        if at == last and not column.right:
            yield fit(printable_line(text), sum(each + GAP for _, each in columns[at:]) - GAP), colour
            return
        end = " " * GAP if at < len(columns) - 1 else ""
        text = printable_line(text)
        yield fit(shorten_middle(text, width) if column.middle else text, width, right=column.right) + end, colour


def column_width(title: str, texts: Iterable[str], widest: int) -> int:
    """The width in cells that shows a title with the arrow of an order, and all texts, if they are not wider."""
    return min(max(cell_len(title), *map(cell_len, texts), 1), max(widest, cell_len(title)))
