"""A table of items, such as trials: sorted by any column, with a cursor and a selection."""

import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from accel_engine.text import printable_line
from accel_tui.formatting.table_columns import Column, ordered
from accel_tui.formatting.text import fit
from accel_tui.widgets.cursor_table import CursorTable

GAP = 2
"""Cells between two columns."""

_LEAD = 3  # width of the selection mark
_COLOURS = ("accent", "success", "warning", "error", "note")

T = TypeVar("T")


class ItemTable(CursorTable, Generic[T]):
    """Items in lines of which only the visible ones are rendered, so that a thousand cost no more than twenty.

    The cursor stays on its item while the items change. The last column gets the spare room.

    Args:
        key: What identifies an item.
        empty: Text where there are no items.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"item-table--{part}" for part in ("row", "header", "order", "cursor", "mark", *_COLOURS)
    }
    DEFAULT_CSS = (
        """
    ItemTable {
        width: 1fr;
        height: 1fr;
        background: $background;
        scrollbar-size-vertical: 1;
        scrollbar-gutter: stable;
        overflow-x: hidden;
        & > .item-table--row { color: $foreground; }
        & > .item-table--header { color: $text-disabled; }
        & > .item-table--order { color: $foreground; text-style: bold; }
        & > .item-table--mark { color: $accent; text-style: bold; }
        & > .item-table--note { color: $text-muted; }
        & > .item-table--cursor { color: $foreground; background: $block-cursor-blurred-background; }
        &:focus > .item-table--cursor {
            color: $block-cursor-foreground;
            background: $block-cursor-background;
            text-style: $block-cursor-text-style;
        }
    """
        + "".join(f"    & > .item-table--{colour} {{ color: ${colour}; }}\n" for colour in _COLOURS[:-1])
        + "}"
    )
    BINDING_GROUP_TITLE = "Table"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Open", id="item-table.open", tooltip="Open what the cursor is on"),
        Binding(
            "greater_than_sign",
            "sort(1)",
            "Sort",
            id="item-table.sort",
            tooltip="Sort by the next column; so does a click on a column",
        ),
        Binding("less_than_sign", "sort(-1)", id="item-table.sort-previous", tooltip="Sort by the previous column"),
        Binding("o", "reverse", id="item-table.reverse", tooltip="Reverse the sort order"),
        Binding("j,down", "move(1)", "Next", show=False, id="item-table.down", tooltip="Next line"),
        Binding("k,up", "move(-1)", "Previous", show=False, id="item-table.up", tooltip="Previous line"),
        Binding("pagedown", "page(1)", id="item-table.page-down", tooltip="Page down"),
        Binding("pageup", "page(-1)", id="item-table.page-up", tooltip="Page up"),
        Binding("home", "move(-1000000)", id="item-table.home", tooltip="First line"),
        Binding("end", "move(1000000)", id="item-table.end", tooltip="Last line"),
    ]

    class Moved(Message):
        """The cursor is on another item, or the selection has changed."""

    @dataclass
    class Opened(Message):
        """An item should be opened."""

        item: Any

    def __init__(self, empty: str = "") -> None:
        super().__init__()
        self.shown: tuple[T, ...] = ()
        """The items in their order."""
        self.selected: frozenset[Hashable] = frozenset()
        """Keys of the selected items."""
        self.sort_column = ""
        self.is_reversed = False
        self.empty = empty
        self._columns: Sequence[Column[T]] = ()
        self._visible: Sequence[Column[T]] = ()

    def key_of(self, item: T) -> Hashable:
        """What identifies an item."""
        raise NotImplementedError

    @property
    def current(self) -> T | None:
        """The item under the cursor."""
        return self.shown[self._cursor] if self.shown else None

    @property
    def selected_items(self) -> tuple[T, ...]:
        """The selected items in their order."""
        return tuple(item for item in self.shown if self.key_of(item) in self.selected)

    def show_items(self, items: Sequence[T], columns: Sequence[Column[T]]) -> None:
        """Show items; the cursor stays on its item, or on its line if that is gone."""
        kept = self.key_of(self.current) if self.current is not None else None
        titles = [column.title for column in columns]
        is_new = titles != [column.title for column in self._columns]
        self._columns = columns
        if self.sort_column not in titles:
            self.sort_column = titles[0] if titles else ""
        if columns:
            column = columns[titles.index(self.sort_column)]
            self.shown = ordered(items, column, is_reversed=self.is_reversed)
        keys = [self.key_of(item) for item in self.shown]
        self._cursor = keys.index(kept) if kept in keys else max(0, min(self._cursor, len(keys) - 1))
        self.selected &= frozenset(keys)
        if is_new:
            self._lay_out()
        self.virtual_size = Size(max(1, self.size.width - 1), len(keys) + 1)
        self.refresh()

    def sort_by(self, title: str) -> None:
        """Sort by a column, in the opposite order if it is the present one; the cursor goes to the first line."""
        self.is_reversed = title == self.sort_column and not self.is_reversed
        self.sort_column = title
        self._sort_again()

    def action_open(self) -> None:
        """Open the current item."""
        if self.current is not None:
            self.post_message(self.Opened(self.current))

    def action_sort(self, direction: int) -> None:
        """Sort by the next visible column, or the previous one."""
        titles = [column.title for column in self._visible]
        if titles:
            at = titles.index(self.sort_column) if self.sort_column in titles else -1
            self.is_reversed, self.sort_column = False, titles[(at + direction) % len(titles)]
            self._sort_again()

    def action_reverse(self) -> None:
        """Reverse the sort order."""
        self.sort_by(self.sort_column)

    def action_select(self) -> None:
        """Select or deselect the current item, and move to the next."""
        if self.current is not None:
            self.selected ^= {self.key_of(self.current)}
            self.go_to(self._cursor + 1)
            self.refresh()
            self.post_message(self.Moved())

    def on_resize(self) -> None:
        """Choose the columns that fit."""
        self._lay_out()
        self.go_to(self._cursor)

    def on_click(self, event: Click) -> None:
        """Sort by a column, or move to a line; a click on the current line opens it."""
        event.stop()
        if event.y == 0:
            if column := self._column_at(event.x):
                self.sort_by(column.title)
            return
        line = self.scroll_offset.y + event.y - 1
        if line == self._cursor:
            self.action_open()
        elif line < len(self.shown):
            self.go_to(line)

    def _sort_again(self) -> None:
        items = self.shown
        self.show_items(items, self._columns)
        self.go_to(0)

    @property
    def line_count(self) -> int:
        """Number of items."""
        return len(self.shown)

    def cursor_moved(self, before: int) -> None:
        """Repaint, and tell of another item."""
        if before != self._cursor:
            self.refresh()
            self.post_message(self.Moved())

    def _lay_out(self) -> None:
        room, chosen = self.size.width - _LEAD + GAP, set()
        for column in sorted(self._columns, key=lambda column: column.drop_priority):
            room -= column.width + GAP
            if room < 0:
                break
            chosen.add(column.title)
        self._visible = [column for column in self._columns if column.title in chosen]
        self.virtual_size = Size(max(1, self.size.width - 1), len(self.shown) + 1)
        self.refresh()

    def _width(self, column: Column[T]) -> int:
        """The width of a column; the last one gets the spare cells if its texts begin at the left."""
        if column is not self._visible[-1] or column.right:
            return column.width
        others = sum(other.width + GAP for other in self._visible[:-1])
        return max(column.width, self.size.width - _LEAD - others - 1)

    def _column_at(self, x: int) -> Column[T] | None:
        end = _LEAD
        for column in self._visible:
            end += self._width(column) + GAP
            if x < end:
                return column
        return None

    def render_line(self, y: int) -> Strip:
        """The header, or an item."""
        if y == 0:
            return self._header()
        line = self.scroll_offset.y + y - 1
        if line >= len(self.shown):
            note = self.empty if line == 0 else ""
            return Strip([Segment(" " * _LEAD + note, self._style("note"))])
        item, now = self.shown[line], time.time()
        plain = self._style("cursor" if line == self._cursor else "row")
        mark = "◆" if self.key_of(item) in self.selected else " "
        segments = [Segment(f" {mark} ", plain + self._style("mark"))]
        for column in self._visible:
            colour = column.colour(item)
            look = plain + self._style(colour) if colour and not (line == self._cursor and self.has_focus) else plain
            text = fit(printable_line(column.text(item, now)), self._width(column), right=column.right)
            segments += [Segment(text, look), Segment(" " * GAP, plain)]
        return Strip(segments).adjust_cell_length(self.size.width, plain)

    def _header(self) -> Strip:
        plain = self._style("header")
        segments = [Segment(" " * _LEAD, plain)]
        for column in self._visible:
            is_order = column.title == self.sort_column
            arrow = ("▼" if column.descending is not self.is_reversed else "▲") if is_order else " "
            look, width = self._style("order") if is_order else plain, self._width(column)
            if column.right:  # the arrow is in the gap, so that the longest title fits
                segments[-1] = Segment(segments[-1].text[:-1], plain)
                segments.append(Segment(fit(arrow + column.title, width + 1, right=True), look))
                segments.append(Segment(" " * GAP, plain))
            else:
                segments += [Segment(fit(column.title + arrow, width + 1), look), Segment(" " * (GAP - 1), plain)]
        return Strip(segments).adjust_cell_length(self.size.width, plain)

    def _style(self, part: str) -> Style:
        return self.get_component_rich_style(f"item-table--{part}", partial=part == "mark" or part in _COLOURS)
