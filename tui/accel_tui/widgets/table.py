"""A table: rows in lines below a header, with a cursor, an order and a selection."""

import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click, MouseDown
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Static

from accel_engine.text import printable_line
from accel_tui.formatting.table_columns import (
    GAP,
    Column,
    SortOrder,
    column_widths,
    fitting_columns,
    line_cells,
    sort_rows,
)
from accel_tui.formatting.text import fit, shorten_middle, wrapped
from accel_tui.widgets.list_keys import LIST_KEYS, SIDEWAYS_KEYS

_MARK = 3  # width of the selection mark
_COLOURS = {name: name for name in ("accent", "primary", "secondary", "success", "warning", "error")} | {
    "note": "text-muted"
}
_COLOURS["border"] = "border"
_PARTS = ("row", "header", "order", "cursor", "mark", "heading")
_INDENT = 2  # cells of a heading for each group that it is in

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Heading:
    """A line above a group of rows, by which the group is folded and unfolded."""

    key: Hashable
    """What identifies the group."""
    title: str
    """Its name."""
    rows: frozenset[Hashable]
    """The keys of its rows, and of the rows of groups within it."""
    note: str = ""
    """The text after the name."""
    depth: int = 0
    """Number of groups that it is in."""
    is_folded: bool = False
    """Whether its rows are hidden."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """What columns mean in this group, by their titles; such a column is aligned to the right."""

    @property
    def label(self) -> str:
        """Sign and name."""
        return printable_line(f"{' ' * _INDENT * self.depth}{'▸' if self.is_folded else '▾'} {self.title}")


class RowDetails(Static):
    """Below a table: what is known of its current row."""

    DEFAULT_CSS = "RowDetails { height: auto; min-height: 4; max-height: 7; padding: 0 1; border-top: solid $border; }"

    def __init__(self) -> None:
        super().__init__(markup=False)


class Table(ScrollView, Generic[T], can_focus=True):
    """Rows of which only the visible ones are rendered, so that thousands cost no more than twenty.

    The cursor stays on its row while the rows change, and only lines that have changed are repainted.

    Args:
        empty: A sentence where there are no rows: what would be here, and which key makes one.
        selectable: Whether several rows can be selected.
        id: The widget's id.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"table--{part}" for part in (*_PARTS, *_COLOURS)}
    DEFAULT_CSS = (
        """
    Table {
        width: 1fr;
        height: 1fr;
        background: $background;
        scrollbar-size: 1 1;
        scrollbar-gutter: stable;
        overflow-x: hidden;
        &.-sideways { overflow-x: auto; }
        & > .table--row { color: $foreground; }
        & > .table--header { color: $text-disabled; }
        & > .table--order { color: $foreground; text-style: bold; }
        & > .table--mark { color: $accent; text-style: bold; }
        & > .table--heading { color: $foreground; text-style: bold; }
        & > .table--cursor { color: $foreground; }
        &:focus > .table--cursor {
            color: $block-cursor-foreground;
            background: $block-cursor-background;
            text-style: $block-cursor-text-style;
        }
    """
        + "".join(f"    & > .table--{name} {{ color: ${colour}; }}\n" for name, colour in _COLOURS.items())
        + "}"
    )
    BINDING_GROUP_TITLE = "Table"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Open", id="table.open", tooltip="Open what the cursor is on"),
        Binding(
            "space",
            "select",
            "Select",
            id="table.select",
            tooltip="Select or deselect the line; so does ctrl+click",
        ),
        Binding("shift+down", "select_next(1)", id="table.select-down", tooltip="Select this line and the next"),
        Binding("shift+up", "select_next(-1)", id="table.select-up", tooltip="Select this line and the previous"),
        Binding("ctrl+a", "select_all", id="table.select-all", tooltip="Select all lines, or none"),
        Binding(
            "greater_than_sign",
            "sort(1)",
            "Sort",
            id="table.sort",
            tooltip="Sort by the next column; so does a click on a column",
        ),
        Binding("less_than_sign", "sort(-1)", id="table.sort-previous", tooltip="Sort by the previous column"),
        Binding("exclamation_mark", "reverse", id="table.reverse", tooltip="Reverse the sort order"),
        Binding("left", "fold", id="table.fold", tooltip="Fold the group; so does a click on its heading"),
        Binding("right", "unfold", id="table.unfold", tooltip="Unfold the group"),
        *LIST_KEYS,
        *SIDEWAYS_KEYS,
    ]

    opens: ClassVar[bool] = True
    """Whether a row can be opened."""

    sideways: ClassVar[bool] = False
    """Whether the columns after the first scroll sideways, rather than being hidden, where there is no room."""

    order: reactive[SortOrder] = reactive(SortOrder(), repaint=False, init=False)
    """The order of the rows."""

    selected: reactive[frozenset[Hashable]] = reactive(frozenset(), repaint=False, init=False)
    """Keys of the selected rows."""

    class Moved(Message):
        """The cursor, the selection, or the rows have changed."""

    @dataclass
    class Opened(Message):
        """A row should be opened."""

        row: Any

    def __init__(self, empty: str = "", *, selectable: bool = False, id: str | None = None) -> None:  # noqa: A002 (Textual's own name)
        super().__init__(id=id)
        self.set_class(self.sideways, "-sideways")
        self.empty = empty
        self.selectable = selectable
        self.shown: tuple[T, ...] = ()
        """The rows in their order, also of folded groups."""
        self.lines: Sequence[T | Heading] = ()
        """The lines below the header: rows, and the headings of groups."""
        self.columns: Sequence[Column[T]] = ()
        """All columns."""
        self._visible: Sequence[tuple[Column[T], int]] = ()  # with their widths
        self._cursor = self._laid_out = 0
        self._painted: dict[int, tuple[object, ...]] = {}

    def key_of(self, row: T) -> Hashable:
        """The key that identifies a row."""
        raise NotImplementedError

    @property
    def keeps_row(self) -> bool:
        """Whether the cursor stays on its row when the rows change, rather than on the first line."""
        return True

    def grouped(self, rows: tuple[T, ...]) -> tuple[tuple[T, ...], Sequence[T | Heading]]:
        """All rows in the order of their groups, and the lines that show them, without what is folded."""
        return rows, rows

    def fold(self, heading: Heading, *, is_folded: bool) -> None:
        """Fold or unfold a group."""

    @property
    def current_line(self) -> T | Heading | None:
        """The row or heading under the cursor."""
        return self.lines[self._cursor] if self.lines else None

    @property
    def current(self) -> T | None:
        """The row under the cursor; ``None`` on a heading."""
        line = self.current_line
        return None if isinstance(line, Heading) else line

    def _key(self, line: T | Heading) -> Hashable:
        return line.key if isinstance(line, Heading) else self.key_of(line)

    @property
    def selected_rows(self) -> tuple[T, ...]:
        """The selected rows in their order."""
        return tuple(row for row in self.shown if self.key_of(row) in self.selected) if self.selected else ()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only what the table can do."""
        match action:
            case "open":
                return self.opens
            case "select" | "select_next" | "select_all":
                return self.selectable
            case "sort" | "reverse":
                return any(column.sort_key for column in self.columns)
            case "scroll_left" | "scroll_right":
                return self.sideways
            case "fold" | "unfold":
                return any(isinstance(line, Heading) for line in self.lines[:1])  # then the first line is one
        return True

    def show_rows(self, rows: Iterable[T], columns: Sequence[Column[T]] | None = None) -> None:
        """Show rows; the cursor stays on its row, or on its line if that is gone.

        Args:
            rows: In the order that is kept where no column is sorted by.
            columns: ``None`` keeps the present ones.
        """
        before = self.current_line
        kept = self._key(before) if before is not None and self.keeps_row else None
        if columns is not None:
            self.columns = columns
        had_lines = bool(self.lines)
        self.shown, self.lines = self.grouped(sort_rows(rows, self.columns, self.order))
        if bool(self.lines) is not had_lines:
            self._painted.clear()
            self.refresh()
        first = 0 if before is not None and self.keeps_row else self._first_row
        self._cursor = max(first, min(self._cursor, len(self.lines) - 1)) if self.keeps_row else first
        if kept is not None:
            found = (at for at, line in enumerate(self.lines) if self._key(line) == kept)
            self._cursor = next(found, self._cursor)
        self.forget(self.key_of(row) for row in self.shown)
        self._lay_out()
        self.go_to(self._cursor)
        self.post_message(self.Moved())

    def forget(self, known: Iterable[Hashable]) -> None:
        """Deselect what is not known."""
        if self.selected:
            self.selected &= frozenset(known)

    def watch_order(self) -> None:
        """Show the rows in the new order, from the top."""
        self._painted.clear()
        self.show_rows(self.shown)
        self.go_to_first_row()
        self.scroll_to(y=0, animate=False, immediate=True)
        self.refresh()

    def watch_selected(self) -> None:
        self.repaint_changed()
        self.post_message(self.Moved())

    def action_open(self) -> None:
        """Open the current row, or fold or unfold the current group."""
        line = self.current_line
        if isinstance(line, Heading):
            self.fold(line, is_folded=not line.is_folded)
        elif line is not None and self.opens:
            self.post_message(self.Opened(line))

    def action_fold(self) -> None:
        """Fold the group of the current line, and go to its heading."""
        line = self.current_line
        depth = line.depth if isinstance(line, Heading) and line.is_folded else None  # then the group around it
        for at in range(self._cursor, -1, -1):
            above = self.lines[at]
            if isinstance(above, Heading) and not above.is_folded and (depth is None or above.depth < depth):
                self.go_to(at)
                self.fold(above, is_folded=True)
                return

    def action_unfold(self) -> None:
        line = self.current_line
        if isinstance(line, Heading) and line.is_folded:
            self.fold(line, is_folded=False)

    def action_select(self) -> None:
        """Select or deselect the current row, or all rows of the current group, and move to the next."""
        line = self.current_line
        if isinstance(line, Heading):
            rows = line.rows
            self.selected = self.selected - rows if rows <= self.selected else self.selected | rows
        elif line is not None:
            self.selected ^= {self.key_of(line)}
        self.go_to(self._cursor + 1)

    def action_select_next(self, direction: int) -> None:
        self._select_range(self._cursor, self._cursor + direction)
        self.go_to(self._cursor + direction)

    def action_select_all(self) -> None:
        """Select all rows, also of folded groups; deselect all if all are selected."""
        every = frozenset(map(self.key_of, self.shown))
        self.selected = frozenset() if every <= self.selected else self.selected | every

    def action_sort(self, direction: int) -> None:
        """Sort by the next visible column, or the previous one."""
        titles = [column.title for column in (each for each, _ in self._visible) if column.sort_key]
        if titles:
            at = titles.index(self.order.column) if self.order.column in titles else -1
            self.order = SortOrder(titles[(at + direction) % len(titles)])

    def action_reverse(self) -> None:
        self.order = self.order.by(self.order.column)

    @property
    def _first_row(self) -> int:
        """The first line that is not a heading; 0 if all are."""
        return next((at for at, line in enumerate(self.lines) if not isinstance(line, Heading)), 0)

    def go_to_first_row(self) -> None:
        """Move the cursor to the first row."""
        self.go_to(self._first_row)

    def action_go_first(self) -> None:
        self.go_to(0)

    def action_go_last(self) -> None:
        self.go_to(len(self.lines) - 1)

    def action_move(self, lines: int) -> None:
        self.go_to(self._cursor + lines)

    def action_page(self, pages: int) -> None:
        self.action_move(pages * max(1, self._lines_visible - 1))

    def go_to(self, line: int) -> None:
        """Move the cursor to a line, or to the nearest one that there is."""
        before, top = self._cursor, self.scroll_offset.y
        line = self._cursor = max(0, min(line, len(self.lines) - 1))
        if not top <= line < top + self._lines_visible:
            top = line if line < top else line - self._lines_visible + 1
            self.scroll_to(y=top, animate=False, immediate=True)
        if before != line:
            self._repaint((before, line))
            self.post_message(self.Moved())

    def on_resize(self) -> None:
        self._painted.clear()
        self._lay_out()
        self.go_to(self._cursor)
        self.refresh()

    def notify_style_update(self) -> None:
        """Repaint in the colours of another theme."""
        super().notify_style_update()
        self.refresh()

    def on_mouse_down(self, event: MouseDown) -> None:
        if self.selectable and (event.shift or event.ctrl):
            event.prevent_default()

    def on_click(self, event: Click) -> None:
        """Sort by a column, select a row, or move to a row; a click on the current row opens it."""
        event.stop()
        line = self.scroll_offset.y + event.y - 1
        if event.y == 0:
            self._sort_at(event.x)
        elif not 0 <= line < len(self.lines):
            return
        elif self.selectable and event.shift:
            self._select_range(self._cursor, line)
            self.go_to(line)
        elif self.selectable and (event.ctrl or event.x < _MARK):
            self.go_to(line)
            self.action_select()
            self.go_to(line)
        elif line == self._cursor or isinstance(self.lines[line], Heading):
            self.go_to(line)
            self.action_open()
        else:
            self.go_to(line)

    def _sort_at(self, x: int) -> None:
        end = self._lead
        for at, (column, width) in enumerate(self._visible):
            end += width + GAP - (self.scroll_offset.x if at == 1 else 0)
            if self._lead <= x < end:
                if column.sort_key:
                    self.order = self.order.by(column.title)
                return

    def _select_range(self, line: int, other: int) -> None:
        first, last = sorted((line, other))
        lines = self.lines[max(0, first) : last + 1]
        self.selected |= {self.key_of(line) for line in lines if not isinstance(line, Heading)}

    @property
    def _lead(self) -> int:
        """Cells before the first column."""
        return _MARK if self.selectable else 1

    @property
    def visible_titles(self) -> tuple[str, ...]:
        """The titles of the columns that are shown."""
        return tuple(column.title for column, _ in self._visible)

    @property
    def room(self) -> int:
        """Cells for the columns."""
        return self.size.width - self._lead - 1

    @property
    def _lines_visible(self) -> int:
        return max(1, self.scrollable_content_region.height - 1)

    def _lay_out(self) -> None:
        """Choose the columns that fit, and repaint what has changed by it."""
        chosen = fitting_columns(self.columns, self.room, self.shown)
        if self.sideways:  # only those that can be left out are
            chosen = [column for column in self.columns if not column.drop_priority or column in chosen]
        visible = list(zip(chosen, column_widths(chosen, self.room), strict=True))
        if [(each.heading, width) for each, width in visible] != [
            (each.heading, width) for each, width in self._visible
        ]:
            self._painted.clear()
            self.refresh()
        self._visible, self._laid_out = visible, self.room
        width = self._lead + sum(width + GAP for _, width in visible) - GAP if self.sideways else self.size.width - 1
        self.virtual_size = Size(max(1, width), max(1, len(self.lines)) + 1)
        self.repaint_changed()

    def repaint_changed(self) -> None:
        """Repaint the lines whose texts have changed, as those with a relative time do by themselves."""
        top = self.scroll_offset.y
        lines = range(top, top + self.size.height - 1)
        self._repaint(line for line in lines if self._painted.get(line) != self._cells(line))

    def _repaint(self, lines: Iterable[int]) -> None:
        top = self.scroll_offset.y
        regions = [Region(0, line - top + 1, self.size.width, 1) for line in lines if line >= top]
        if regions:
            self.refresh(*regions)

    def _cells(self, line: int) -> tuple[object, ...]:
        """The cells of a line: its selection mark, then text and colour of each column; empty below the last row."""
        if not self.lines:
            return (self.empty,)
        if not 0 <= line < len(self.lines):
            return ()
        row, now = self.lines[line], time.time()
        if isinstance(row, Heading):
            is_selected = bool(self.selected) and self.selected.issuperset(row.rows)
            return (("◆" if is_selected else " ", "mark"), row.label, row.note, *row.titles.items())
        is_selected = bool(self.selected) and self.key_of(row) in self.selected
        mark = ("◆", self.mark_colour(row)) if is_selected else (" ", "mark")
        return (
            mark,
            *(
                (column.draw(row, width) if column.draw else column.text(row, now), column.colour(row))
                for column, width in self._visible
            ),
        )

    def render_line(self, y: int) -> Strip:
        if self._laid_out != self.room:  # a table that is shown as it is mounted is painted before it is told its size
            self._lay_out()
        if y == 0 and self.lines:
            return self._placed(self._header(), self._style("header"))
        line = self.scroll_offset.y + y - 1
        cells: Sequence[Any] = self._cells(line)
        self._painted[line] = tuple(cells)
        if not self.lines:
            return self._empty_line(y)
        if line >= len(self.lines):
            return self._placed([], self._style("row"))
        at_cursor = line == self._cursor
        in_focus = at_cursor and self.has_focus
        plain = self._style("cursor" if at_cursor else "row")
        (mark, mark_colour), *texts = cells
        row = self.lines[line]
        segments = [Segment(f" {mark} "[-self._lead :], plain + self._style(mark_colour))]
        if isinstance(row, Heading):
            segments += self._heading(row, None if in_focus else "border", plain)
            return self._placed(segments, plain)
        for (column, _), (text, colour) in zip(self._visible, line_cells(self._visible, texts), strict=False):
            is_coloured = colour and (column.draw or not in_focus)  # bars keep theirs below the cursor
            segments.append(Segment(text, plain + self._style(colour) if is_coloured else plain))
        return self._placed(segments, plain)

    def mark_colour(self, row: T) -> str:
        """The colour of the mark of a selected row."""
        return "mark"

    def _heading(self, heading: Heading, colour: str | None, plain: Style) -> Iterable[Segment]:
        """The heading of a group: a rule after its name, with what the columns below it mean.

        Args:
            heading: The heading.
            colour: The colour of the rule; ``None`` for the text's.
            plain: The style of the line.
        """
        rule = plain + self._style(colour) if colour else plain
        name = plain + Style(bold=True) if colour is None else plain + self._style("heading")
        quiet = plain + self._style("note") if colour else plain
        label = fit(heading.label, min(cell_len(heading.label), self.room))
        note = f"  {shorten_middle(printable_line(heading.note), max(self.room - cell_len(label) - 3, 1))} "
        x, end = cell_len(label + note), 0
        yield from (Segment(label, name), Segment(note, quiet))
        for column, width in self._visible:
            end += width + GAP
            title = heading.titles.get(column.title, "")
            start = max(end - GAP - cell_len(title), x + 2 if heading.is_folded else 0)
            if title and x < start < self.room - cell_len(title):
                yield Segment("─" * (start - 1 - x) + " ", rule)
                yield Segment(f"{title} ", quiet)
                x = start + cell_len(title) + 1
        yield Segment("─" * max(0, self.room - x), rule)

    def _empty_line(self, y: int) -> Strip:
        """A line of the text in the middle of a table without rows; there is no header."""
        lines = wrapped(self.empty, max(self.size.width - 2, 1))
        at = y - max((self.size.height - len(lines)) // 2, 0)
        text = lines[at] if 0 <= at < len(lines) else ""
        left = max(self.size.width - cell_len(text), 0) // 2
        style = self._style("row") + self._style("note")
        return self._placed([Segment(" " * left + text, style)], style)

    def _placed(self, segments: list[Segment], style: Style) -> Strip:
        """A line at its width, whose columns after the first are scrolled sideways."""
        strip, x = Strip(segments), self.scroll_offset.x
        if self.sideways and x and self._visible:
            fixed = self._lead + self._visible[0][1] + GAP
            strip = Strip.join([strip.crop(0, fixed), strip.crop(fixed + x)])
        return strip.adjust_cell_length(self.size.width, style)

    def _header(self) -> list[Segment]:
        plain = self._style("header")
        segments = [Segment(" " * self._lead, plain)]
        for column, width in self._visible:
            is_order = column.sort_key is not None and column.title == self.order.column
            arrow = ("▼" if self.order.is_descending(column) else "▲") if is_order else " "
            style = self._style("order") if is_order else plain
            if column.title_colour:
                style += self._style(column.title_colour)
            title = printable_line(column.heading)
            if column.right:  # the arrow is in the gap, so that the longest title fits
                segments[-1] = Segment(segments[-1].text[:-1], plain)
                segments += [Segment(fit(arrow + title, width + 1, right=True), style), Segment(" " * GAP, plain)]
            else:
                segments += [Segment(fit(title + arrow, width + 1), style), Segment(" " * (GAP - 1), plain)]
        return segments

    def _style(self, part: str) -> Style:
        return self.get_component_rich_style(f"table--{part}", partial=part == "mark" or part in _COLOURS)
