"""The list of runs: sorted, filtered, with a selection."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import on, work
from textual.binding import Binding, BindingType
from textual.events import Click, MouseDown, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.worker import Worker

from accel_engine.run import RunList, RunSummary
from accel_tui.run_list.columns import SYMBOLS, TITLES, SortOrder, ordered
from accel_tui.run_list.run_filter import key_error, matches, parse
from accel_tui.widgets.cursor_table import CursorTable
from accel_tui.widgets.runs.runs_layout import RunsLayout

INTERVAL = 2.0
"""Seconds between two refreshes."""

FIRST = 40
"""Number of runs that are listed first, about one screen, before all others are read."""

_MARK = 3  # width of the selection mark
_COLOURS = ("accent", "success", "warning", "error")


class RunsTable(CursorTable):
    """Runs, newest first by default, refreshed while the table is visible.

    Only visible lines are rendered, so that a thousand runs cost no more than twenty. The cursor stays on its run while
    the list changes.

    Args:
        selectable: Whether several runs can be selected.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"runs-table--{part}" for part in ("row", "header", "order", "cursor", "mark", "note", *_COLOURS)
    }
    DEFAULT_CSS = (
        """
    RunsTable {
        width: 1fr;
        height: 1fr;
        background: $background;
        scrollbar-size-vertical: 1;
        scrollbar-gutter: stable;
        overflow-x: hidden;
        & > .runs-table--row { color: $foreground; }
        & > .runs-table--header { color: $text-disabled; }
        & > .runs-table--order { color: $foreground; text-style: bold; }
        & > .runs-table--mark { color: $accent; text-style: bold; }
        & > .runs-table--note { color: $text-muted; }
        & > .runs-table--cursor { color: $foreground; }
        &:focus > .runs-table--cursor {
            color: $block-cursor-foreground;
            background: $block-cursor-background;
            text-style: $block-cursor-text-style;
        }
    """
        + "".join(f"    & > .runs-table--{colour} {{ color: ${colour}; }}\n" for colour in _COLOURS)
        + "}"
    )
    BINDING_GROUP_TITLE = "List of runs"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Open", id="runs.open", tooltip="Open the run"),
        Binding(
            "space", "select", "Select", id="runs.select", tooltip="Select the run, or deselect it; so does ctrl+click"
        ),
        Binding("shift+down", "select_next(1)", id="runs.select-down", tooltip="Select this run and the next"),
        Binding("shift+up", "select_next(-1)", id="runs.select-up", tooltip="Select this run and the previous"),
        Binding(
            "greater_than_sign",
            "sort(1)",
            "Sort",
            id="runs.sort",
            tooltip="Sort by the next column; so does a click on a column",
        ),
        Binding("less_than_sign", "sort(-1)", id="runs.sort-previous", tooltip="Sort by the previous column"),
        Binding("o", "reverse", "Reverse the order", show=False, id="runs.reverse", tooltip="Reverse the sort order"),
        Binding("j,down", "move(1)", "Next run", id="runs.down", show=False, tooltip="Go to the next run"),
        Binding("k,up", "move(-1)", "Previous run", id="runs.up", show=False, tooltip="Go to the previous run"),
        Binding("pagedown", "page(1)", id="runs.page-down", tooltip="Page down"),
        Binding("pageup", "page(-1)", id="runs.page-up", tooltip="Page up"),
        Binding("home", "move(-1000000)", id="runs.home", tooltip="First run"),
        Binding("end", "move(1000000)", id="runs.end", tooltip="Last run"),
    ]

    listing: ClassVar[RunList] = RunList()
    """Shared by all tables, so that a list that is opened again is complete at once."""

    runs: reactive[tuple[RunSummary, ...] | None] = reactive(None, repaint=False)
    """All runs; ``None`` before they are read."""

    filter: reactive[str] = reactive("", repaint=False)
    """Filter expression; see :mod:`accel_tui.run_list.run_filter`."""

    order: reactive[SortOrder] = reactive(SortOrder(), repaint=False)
    """The sort order."""

    selected_ids: reactive[frozenset[str]] = reactive(frozenset(), repaint=False)
    """Ids of the selected runs, visible or not."""

    @dataclass
    class Listed(Message):
        """The runs were read; at first only the most recently written ones."""

        table: "RunsTable"
        runs: tuple[RunSummary, ...]
        whole: bool = True

        @property
        def control(self) -> "RunsTable":
            """The sender, for :func:`textual.on`."""
            return self.table

    @dataclass
    class Opened(Message):
        """A run should be opened."""

        run: RunSummary

    class SelectionChanged(Message):
        """The cursor, the selection, or the listed runs have changed."""

    def __init__(self, *, selectable: bool = False) -> None:
        super().__init__()
        self.shown: tuple[RunSummary, ...] = ()
        """The matching runs in their order."""
        self.lines = RunsLayout()
        """The columns that fit."""
        self._selectable = selectable
        self._lines: dict[int, tuple[str, ...]] = {}
        self._open_when_listed = False
        self._is_partial = False
        self._worker: Worker[None] | None = None

    @property
    def current(self) -> RunSummary | None:
        """The run under the cursor."""
        return self.shown[self._cursor] if self.shown else None

    @property
    def selected_runs(self) -> tuple[RunSummary, ...]:
        """The selected runs in list order; those hidden by the filter come last."""
        everything = dict.fromkeys(run.id for run in self.shown) | {run.id: None for run in self.runs or ()}
        by_id = {run.id: run for run in self.runs or ()}
        return tuple(by_id[each] for each in everything if each in self.selected_ids and each in by_id)

    def on_mount(self) -> None:
        """Start refreshing."""
        self.set_interval(INTERVAL, self.refresh_runs)
        self.watch(self.app, "theme", self._rebuild_columns, init=False)

    def refresh_runs(self) -> None:
        """Read the runs in a thread, unless the table is invisible or a read is in progress."""
        if self.size and self.screen.is_current and (self._worker is None or self._worker.is_finished):
            self._worker = self._list()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer selection only where it is possible."""
        del parameters
        return self._selectable if action in ("select", "select_next") else True

    def watch_runs(self) -> None:
        """Drop runs that are gone from the selection."""
        if self.runs is not None and self.selected_ids:
            self.selected_ids &= {run.id for run in self.runs}
        self._update_shown()

    def watch_order(self) -> None:
        """Show the runs in the new order, from the top."""
        self._update_shown()
        self.go_to(0)
        self._rebuild_columns()

    def watch_selected_ids(self) -> None:
        """Show the selection."""
        self._update()
        self.post_message(self.SelectionChanged())

    def action_open(self) -> None:
        """Open the current run; a press before the runs are read takes effect then."""
        self._open_when_listed = self.runs is None
        if self.current:
            self.post_message(self.Opened(self.current))

    def action_select(self) -> None:
        """Select or deselect the current run, and move to the next."""
        if self.current:
            self.selected_ids ^= {self.current.id}
            self.go_to(self._cursor + 1)

    def action_select_next(self, direction: int) -> None:
        """Select the current run and its neighbour."""
        self._select_range(self._cursor, self._cursor + direction)
        self.go_to(self._cursor + direction)

    def action_sort(self, direction: int) -> None:
        """Sort by the next visible column, or the previous one."""
        titles = [column.title for column in self.lines.columns] or list(TITLES)
        at = titles.index(self.order.column) if self.order.column in titles else -1
        self.order = SortOrder(titles[(at + direction) % len(titles)])

    def action_reverse(self) -> None:
        """Reverse the sort order."""
        self.order = self.order.by(self.order.column)

    @on(Resize)
    def _lay_out(self) -> None:
        if self.runs is None:
            self.runs = self.listing.runs or None  # the last known runs, until they are read again
            self.refresh_runs()
        self._rebuild_columns()

    @work(thread=True, exit_on_error=False, group="runs")
    def _list(self) -> None:
        if not self.listing.runs and not self.listing.refresh(FIRST):
            self.post_message(self.Listed(self, self.listing.runs, whole=False))
        self.listing.refresh()
        self.post_message(self.Listed(self, self.listing.runs))

    @on(Listed)
    def _update_runs(self, event: Listed) -> None:
        begins = self._is_partial and self._cursor == 0
        self._is_partial = not event.whole
        self.runs = event.runs
        if begins:
            self.go_to(0)  # the user did not choose the first of a partial list
        self._update()  # relative times change even if nothing else does
        if self._open_when_listed:
            self.action_open()

    def on_mouse_down(self, event: MouseDown) -> None:
        """Keep clicks that select runs from selecting text."""
        if event.shift or event.ctrl:
            event.prevent_default()

    def on_click(self, event: Click) -> None:
        """Sort by a column, select a run, or move to a run; a click on the current run opens it."""
        event.stop()
        if event.y == 0:
            if column := self.lines.column_at(event.x):
                self.order = self.order.by(column.title)
            return
        line = self.scroll_offset.y + event.y - 1
        if not 0 <= line < len(self.shown):
            return
        if self._selectable and event.shift:
            self._select_range(self._cursor, line)
        elif self._selectable and (event.ctrl or event.x < _MARK):
            self.selected_ids ^= {self.shown[line].id}
        elif line == self._cursor:
            self.post_message(self.Opened(self.shown[line]))
        self.go_to(line)

    def _select_range(self, line: int, other: int) -> None:
        first, last = sorted((line, other))
        self.selected_ids |= {run.id for run in self.shown[max(0, first) : last + 1]}

    @property
    def line_count(self) -> int:
        """Number of matching runs."""
        return len(self.shown)

    def cursor_moved(self, before: int) -> None:
        """Repaint both lines, and tell of another run."""
        self._repaint((before, self._cursor))
        if before != self._cursor:
            self.post_message(self.SelectionChanged())

    def _update_shown(self) -> None:
        """Filter and sort; the cursor stays on its run, or on its line if the run is gone.

        Without the focus, a list beside something else begins with the newest run.
        """
        kept = self.current if self._selectable or self.has_focus else None
        terms = parse(self.filter)
        self.shown = ordered((run for run in self.runs or () if matches(run, terms)), self.order)
        ids = [run.id for run in self.shown]
        self._cursor = max(0, min(self._cursor, len(ids) - 1)) if kept else 0
        if kept and kept.id in ids:
            self._cursor = ids.index(kept.id)
        self.virtual_size = Size(max(1, self.size.width - 1), len(ids) + 1)
        if self._layout() != self.lines:  # other columns have values now
            self._rebuild_columns()
        self._update()
        self.go_to(self._cursor)
        self.post_message(self.SelectionChanged())

    watch_filter = _update_shown

    def _rebuild_columns(self) -> None:
        self.lines = self._layout()
        self.virtual_size = Size(max(1, self.size.width - 1), len(self.shown) + 1)
        self._lines.clear()
        self.refresh()

    def _layout(self) -> RunsLayout:
        return RunsLayout.fitting(self.size.width, _MARK if self._selectable else 1, self.shown)

    def _update(self) -> None:
        """Repaint the lines whose text has changed."""
        self._repaint(
            line
            for line in range(self.scroll_offset.y, self.scroll_offset.y + self.size.height)
            if self._lines.get(line) != self._texts(line)
        )

    def _repaint(self, lines: Iterable[int]) -> None:
        top = self.scroll_offset.y
        regions = [Region(0, line - top + 1, self.size.width, 1) for line in lines if line >= top]
        if regions:
            self.refresh(*regions)

    def _texts(self, line: int) -> tuple[str, ...]:
        """The text of a line: selection mark and columns."""
        if not 0 <= line < len(self.shown):
            return ()
        run, now = self.shown[line], time.time()
        return ("◆" if run.id in self.selected_ids else " ", *(column.text(run, now) for column in self.lines.columns))

    def render_line(self, y: int) -> Strip:
        """The header, or a run."""
        if y == 0:
            titles = Strip(self.lines.header(self.order, self._style))
            return titles.adjust_cell_length(self.size.width, self._style("header"))
        line = self.scroll_offset.y + y - 1
        texts = self._lines[line] = self._texts(line)
        if not texts:
            reason = key_error(self.filter) or "No matching runs"
            note = f"{reason}. Escape clears the filter." if line == 0 and self.runs else ""
            return Strip([Segment(" " * self.lines.lead + note, self._style("note"))])
        plain, mark = self._style("cursor" if line == self._cursor else "row"), self._style("mark")
        status = self._style(SYMBOLS[self.shown[line].status][1])
        return Strip(self.lines.line(texts, plain, mark, status)).adjust_cell_length(self.size.width, plain)

    def _style(self, part: str) -> Style:
        return self.get_component_rich_style(f"runs-table--{part}", partial=part == "mark" or part in _COLOURS)
