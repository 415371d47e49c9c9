"""Tables of texts: one with a cursor and an order, and several below one another, as a job has found them."""

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.events import Click
from textual.widgets import Label, Static

from accel_engine.text import printable, printable_line
from accel_tui.formatting.table_columns import KEPT, Column, DrawnColumn, ResultTable, SortKey, column_width
from accel_tui.widgets.table import Table

_NUMBER = re.compile(
    r"(?:[(~]|under |over )?([+-]?[\d.,]+(?:e[+-]?\d+)?) ?([kMGTPE]?)(?:(µs|ms|[KMGT]iB)|s|B|%|x)?\)?(?: [(±━╸].*)?"
)
_FACTORS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_FACTORS |= {"µs": 1e-6, "ms": 1e-3, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}
_MISSING = ("", "-", "—", "none", "nan", "inf", "-inf")  # among numbers, and last in any order
_WIDEST = 200  # cells of a column
_LEAST_DRAWN = 10  # cells of a column of bars
_LEAST_LINES = 8  # of a table with its frame
_LEAST = 8  # cells of the last column, where columns do not scroll


@dataclass(frozen=True, slots=True)
class TextRow:
    """A row of texts."""

    number: int
    """Its place among the rows."""
    texts: tuple[str, ...]
    """A text per column."""
    colours: tuple[str, ...] = ()
    """The theme colour of each; empty for none at all."""


class TextTable(Table[TextRow]):
    """Texts in columns as wide as the texts need; columns of numbers are aligned at the right."""

    opens = False
    sideways = True

    def key_of(self, row: TextRow) -> Hashable:
        return row.number

    def show_texts(
        self,
        titles: Sequence[str],
        rows: Sequence[TextRow],
        widest: int = _WIDEST,
        drawn: Sequence[DrawnColumn] = (),
        alike: Sequence[Sequence[str]] = (),
        optional: Sequence[str] = (),
    ) -> None:
        """Show texts.

        Args:
            titles: The headers.
            rows: The texts.
            widest: The most cells of a column of texts.
            drawn: The columns that are drawn.
            alike: The texts of other tables with these columns, which have the same widths.
            optional: The headers of columns that are hidden where there is no room, the last first, and if empty.
        """
        columns = [_text_column(at, title, rows, widest, [row[at] for row in alike]) for at, title in enumerate(titles)]
        for at, title in enumerate(titles):
            if title in optional:
                columns[at] = replace(columns[at], drop_priority=KEPT + 1 + optional.index(title))
        for each in reversed(drawn):
            columns.insert(titles.index(each.after) + 1, _drawn_column(each))
        if columns and not self.sideways:
            columns[-1] = replace(columns[-1], width=min(columns[-1].width, _LEAST), widest=columns[-1].width)
        self.show_rows(rows, columns)


class FollowingTable(TextTable, can_focus=False):
    """Its cursor follows another one; a click on a row opens it."""

    opens = True
    sideways = False

    def on_click(self, event: Click) -> None:
        """Sort by a column, or open a row."""
        super().on_click(event)
        if event.y:
            self.action_open()


def _text_column(at: int, title: str, rows: Sequence[TextRow], widest: int, others: Sequence[str]) -> Column[TextRow]:
    texts = [row.texts[at] for row in rows]
    is_number = all(_number(text) is not None for text in texts if text not in _MISSING)

    def key(row: TextRow) -> SortKey | None:
        text = row.texts[at]
        if is_number:
            return None if (value := _number(text)) is None else (value, "")
        return (0.0, text.casefold()) if text else None

    return Column(
        title,
        column_width(title, (*texts, *others), widest),
        lambda row, _: row.texts[at],
        key if title else None,
        right=is_number,
        colour=lambda row: row.colours[at] if row.colours else "",
    )


def _drawn_column(drawn: DrawnColumn) -> Column[TextRow]:
    return Column(
        drawn.title,
        max(len(drawn.title), _LEAST_DRAWN),
        lambda _row, _now: "",
        colour=lambda _: drawn.colour,
        drop_priority=1,
        widest=drawn.widest,
        draw=lambda row, width: drawn.cells[row.number](width),
    )


def _number(text: str) -> float | None:
    """The number that a text begins with, in seconds or bytes if it has such a unit; ``None`` for any other text."""
    if (found := _NUMBER.fullmatch(text.strip())) is None:
        return None
    try:
        return float(found[1].replace(",", "")) * _FACTORS[found[2]] * _FACTORS[found[3] or ""]
    except ValueError:
        return None


class _Section(Vertical):
    """A table below its title, and a note below it."""

    def __init__(self, table: TextTable) -> None:
        super().__init__(classes="panel")
        self.table = table
        self._title, self._note = Label(markup=False), Static(classes="note", markup=False)

    def compose(self) -> ComposeResult:
        yield self._title
        yield self.table
        yield self._note

    def show(
        self, found: ResultTable, sign: Content, colours: Mapping[str, str], tables: Sequence[ResultTable]
    ) -> None:
        for widget, text in ((self._title, found.title), (self._note, found.note)):
            widget.set_class(not text, "-empty")
        title = Content.assemble(sign, (printable_line(found.title), "bold"))
        self._title.update(title)
        self.border_title = title
        self._note.update(printable(found.note))
        rows = [
            TextRow(number, texts, tuple(colours.get(text, found.colour) for text in texts))
            for number, texts in enumerate(found.rows)
        ]
        drawn = [
            replace(each, after=found.shown_title(each.after), title=found.shown_title(each.title))
            for each in found.drawn
        ]
        alike = [row for table in tables if table.header == found.header for row in table.rows]
        titles, optional = ([found.shown_title(each) for each in names] for names in (found.header, found.optional))
        self.table.show_texts(titles, rows, drawn=drawn, alike=alike, optional=optional)


class ResultTables(VerticalScroll):
    """Tables below one another.

    Args:
        follows: Whether the cursors of the tables follow others, rather than moving by keys.
        colours: The theme colours of some texts.
        awaited: What will be here, shown in the middle while there are no tables.
        id: The widget's id.
    """

    DEFAULT_CSS = """
    ResultTables {
        scrollbar-size: 1 1;
        _Section { height: auto; margin: 0 0 1 0; }
        Label { max-width: 100%; text-wrap: nowrap; text-overflow: ellipsis; }
        Label, .note { padding: 0 1; }
        TextTable { height: auto; max-height: 100%; scrollbar-gutter: auto; }
        .note { height: auto; color: $text-muted; }
        .-empty { display: none; }
        .awaited {
            display: none;
            width: 100%;
            height: 100%;
            padding: 0 4;
            color: $text-muted;
            content-align: center middle;
            text-align: center;
        }
        &.-awaited .awaited { display: block; }
        FollowingTable > .table--cursor { background: $block-cursor-blurred-background; text-style: bold; }
    }
    """

    def __init__(
        self,
        *,
        follows: bool = False,
        colours: Mapping[str, str] | None = None,
        awaited: str = "",
        id: str | None = None,  # noqa: A002 (Textual's own name)
    ) -> None:
        super().__init__(id=id, can_focus=follows)  # to scroll, where the tables take no keys
        self._follows, self._colours = follows, colours or {}
        self._sections = list[_Section]()
        self._awaited = awaited

    def compose(self) -> ComposeResult:
        if self._awaited:
            yield Static(self._awaited, classes="awaited", markup=False)

    def show(self, tables: Sequence[ResultTable], signs: Sequence[Content] = ()) -> None:
        """Show tables; those at the same place keep their cursors and orders.

        Args:
            tables: The tables.
            signs: What is before the titles of the first ones.
        """
        self.set_class(not tables, "-awaited")
        for section in self._sections[len(tables) :]:
            section.disabled = True  # takes no focus until it is removed
            section.remove()
        new = [_Section(FollowingTable() if self._follows else TextTable()) for _ in tables[len(self._sections) :]]
        self._sections = [*self._sections[: len(tables)], *new]
        for place, (section, table) in enumerate(zip(self._sections, tables, strict=True)):
            is_last = place == len(tables) - 1
            section.set_class(is_last, "-last")
            section.set_class(len(tables) == 1, "-only")
            section.styles.min_height = min(len(table.rows) + 3, _LEAST_LINES) if is_last else 0
            section.show(table, signs[place] if place < len(signs) else Content(""), self._colours, tables)
        if new:
            self.mount_all(new)
            self.call_after_refresh(self._focus_first)

    def select(self, number: int) -> None:
        """Move the cursor of the first table to a row."""
        table = self._sections[0].table
        table.go_to([row.number for row in table.shown].index(number))

    def _focus_first(self) -> None:
        """Take the focus, if nothing else that is shown has it."""
        if self._sections and not self._follows and self.is_attached and self.is_on_screen:
            other = self.screen.focused
            if other is None or not other.is_on_screen:
                self._sections[0].table.focus()
