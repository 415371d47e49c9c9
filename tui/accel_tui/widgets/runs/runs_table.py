"""The list of runs, a line each: in any order, some of them, and some of those chosen."""

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
from accel_tui.runs.columns import SYMBOLS, ordered
from accel_tui.runs.run_filter import fits, parse
from accel_tui.widgets.runs.runs_layout import RunsLayout
from accel_tui.widgets.runs.runs_table_keys import RunsTableKeys

INTERVAL = 2.0
"""Seconds between two looks for runs."""

FIRST = 40
"""How many runs are shown before all others were read, where none was: as many as the first screen has, mostly."""

_MARK = 3  # cells that the mark of a chosen run takes
_COLOURS = ("accent", "success", "warning", "error")


class RunsTable(RunsTableKeys):
    """Runs, newest first at first, looked for again and again while the table is on the screen.

    Only the lines on the screen are made, so that a thousand runs cost no more than twenty. The cursor stays on its
    run while the list changes.

    Args:
        choosing: Whether several runs can be chosen.
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
    BINDING_GROUP_TITLE = "In the list of runs"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Open", id="runs.open", tooltip="Look at the run, or compare those that are chosen"),
        Binding("space", "mark", "Choose", id="runs.mark", tooltip="Choose the run, or no longer; ctrl-click too"),
        Binding("shift+down", "mark_on(1)", id="runs.mark-down", show=False, tooltip="Choose it and the next"),
        Binding("shift+up", "mark_on(-1)", id="runs.mark-up", show=False, tooltip="Choose it and the one before"),
        Binding(
            "greater_than_sign",
            "order(1)",
            "Order",
            id="runs.order",
            tooltip="Order by the next column; so does a click on one",
        ),
        Binding(
            "less_than_sign", "order(-1)", show=False, id="runs.order-before", tooltip="Order by the column before"
        ),
    ]

    listing: ClassVar[RunList] = RunList()
    """All tables' runs, so that a list that is opened again is there at once."""

    runs: reactive[tuple[RunSummary, ...] | None] = reactive(None, repaint=False)
    """All runs; ``None`` before they were looked for."""

    filter: reactive[str] = reactive("", repaint=False)
    """Only the runs that fit these words are shown; see :mod:`accel_tui.runs.run_filter`."""

    marks: reactive[frozenset[str]] = reactive(frozenset(), repaint=False)
    """The ids of those that are chosen, shown or not."""

    @dataclass
    class Listed(Message):
        """The runs were looked through; at first, not the whole list but some that were written of late."""

        table: "RunsTable"
        runs: tuple[RunSummary, ...]
        whole: bool = True

        @property
        def control(self) -> "RunsTable":
            """The table that it comes from."""
            return self.table

    @dataclass
    class Opened(Message):
        """Somebody wants to look at a run."""

        run: RunSummary

    @dataclass
    class Compared(Message):
        """Somebody wants to compare the runs that are chosen."""

        runs: tuple[RunSummary, ...]

    class Turned(Message):
        """Another run is under the cursor, others are chosen, or others are shown."""

    def __init__(self, *, choosing: bool = False) -> None:
        super().__init__()
        self.shown: tuple[RunSummary, ...] = ()
        """Those that fit, in their order."""
        self.lines = RunsLayout()
        """The columns that there is room for."""
        self._choosing = choosing
        self._cursor = 0
        self._lines: dict[int, tuple[str, ...]] = {}
        self._is_awaited = False
        self._is_partial = False
        self._worker: Worker[None] | None = None

    @property
    def current(self) -> RunSummary | None:
        """The run that the cursor is on."""
        return self.shown[self._cursor] if self.shown else None

    @property
    def chosen(self) -> tuple[RunSummary, ...]:
        """The runs that are chosen, in the order of the list; those that the filter hides come last."""
        everything = dict.fromkeys(run.id for run in self.shown) | {run.id: None for run in self.runs or ()}
        by_id = {run.id: run for run in self.runs or ()}
        return tuple(by_id[each] for each in everything if each in self.marks and each in by_id)

    def on_mount(self) -> None:
        """Begin to look."""
        self.set_interval(INTERVAL, self.look)
        self.watch(self.app, "theme", self._draw_anew, init=False)

    def look(self) -> None:
        """Look for runs, unless nobody would see them or it is being done."""
        if self.size and self.screen.is_current and (self._worker is None or self._worker.is_finished):
            self._worker = self._list()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Choose only where something comes of it."""
        del parameters
        return self._choosing if action in ("mark", "mark_on") else True

    def watch_runs(self) -> None:
        """Show them."""
        if self.runs is not None and self.marks:
            self.marks &= {run.id for run in self.runs}
        self._arrange()

    def watch_filter(self) -> None:
        """Show what fits."""
        self._arrange()

    def watch_order(self) -> None:
        """Show them in this order, from its beginning."""
        self._arrange()
        self._go_to(0)
        self._draw_anew()

    def watch_marks(self) -> None:
        """Show which are chosen."""
        self._update()
        self.post_message(self.Turned())

    def action_open(self) -> None:
        """Open the run under the cursor, or compare; who asks before there are runs is served once they are there."""
        self._is_awaited = self.runs is None
        if len(self.chosen) > 1:
            self.post_message(self.Compared(self.chosen))
        elif self.current:
            self.post_message(self.Opened(self.current))

    def action_mark(self) -> None:
        """Choose the run under the cursor, or no longer, and go on to the next."""
        if self.current:
            self.marks ^= {self.current.id}
            self._go_to(self._cursor + 1)

    def action_mark_on(self, direction: int) -> None:
        """Choose the run under the cursor and its neighbour."""
        self._mark_between(self._cursor, self._cursor + direction)
        self._go_to(self._cursor + direction)

    @on(Resize)
    def _lay_out(self) -> None:
        if self.runs is None:
            self.runs = self.listing.runs or None  # what was read before, until it has been looked again
            self.look()
        self._draw_anew()

    @work(thread=True, exit_on_error=False, group="runs")
    def _list(self) -> None:
        if not self.listing.runs and not self.listing.refresh(FIRST):
            self.post_message(self.Listed(self, self.listing.runs, whole=False))
        self.listing.refresh()
        self.post_message(self.Listed(self, self.listing.runs))

    @on(Listed)
    def _take(self, event: Listed) -> None:
        begins = self._is_partial and self._cursor == 0
        self._is_partial = not event.whole
        self.runs = event.runs
        if begins:
            self._go_to(0)  # nobody chose the run that happened to be the first of some
        self._update()  # although nothing else changed, time did
        if self._is_awaited:
            self.action_open()

    def on_mouse_down(self, event: MouseDown) -> None:
        """Do not begin to select text with a click that chooses runs."""
        if event.shift or event.ctrl:
            event.prevent_default()

    def on_click(self, event: Click) -> None:
        """Order by a column; choose a run; go to one, and open it where the cursor is already."""
        event.stop()
        if event.y == 0:
            if column := self.lines.column_at(event.x):
                self.order = self.order.by(column.title)
            return
        line = self.scroll_offset.y + event.y - 1
        if not 0 <= line < len(self.shown):
            return
        if self._choosing and event.shift:
            self._mark_between(self._cursor, line)
        elif self._choosing and (event.ctrl or event.x < _MARK):
            self.marks ^= {self.shown[line].id}
        elif line == self._cursor:
            self.post_message(self.Opened(self.shown[line]))
        self._go_to(line)

    def _mark_between(self, line: int, other: int) -> None:
        first, last = sorted((line, other))
        self.marks |= {run.id for run in self.shown[max(0, first) : last + 1]}

    def _go_to(self, line: int) -> None:
        line = max(0, min(line, len(self.shown) - 1))
        before, self._cursor = self._cursor, line
        self._repaint((before, line))
        top, room = self.scroll_offset.y, max(1, self.size.height - 1)
        if not top <= line < top + room:
            self.scroll_to(y=line if line < top else line - room + 1, animate=False, immediate=True)
        if before != line:
            self.post_message(self.Turned())

    def _arrange(self) -> None:
        """Find out anew what is shown, and keep the cursor on its run; where that is gone, on its line."""
        kept = self.current
        terms = parse(self.filter)
        self.shown = ordered((run for run in self.runs or () if fits(run, terms)), self.order)
        ids = [run.id for run in self.shown]
        self._cursor = max(0, min(self._cursor, len(ids) - 1))
        if kept and kept.id in ids:
            self._cursor = ids.index(kept.id)
        self.virtual_size = Size(max(1, self.size.width - 1), len(ids) + 1)
        self._update()
        self._go_to(self._cursor)
        self.post_message(self.Turned())

    def _draw_anew(self) -> None:
        self.lines = RunsLayout.fitting(self.size.width, _MARK if self._choosing else 1)
        self.virtual_size = Size(max(1, self.size.width - 1), len(self.shown) + 1)
        self._lines.clear()
        self.refresh()

    def _update(self) -> None:
        """Paint the lines whose text is another."""
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
        """What is said in a line: the mark and every column."""
        if not 0 <= line < len(self.shown):
            return ()
        run, now = self.shown[line], time.time()
        return ("◆" if run.id in self.marks else " ", *(column.text(run, now) for column in self.lines.columns))

    def render_line(self, y: int) -> Strip:
        """The header, or a run."""
        if y == 0:
            titles = Strip(self.lines.header(self.order, self._style))
            return titles.adjust_cell_length(self.size.width, self._style("header"))
        line = self.scroll_offset.y + y - 1
        texts = self._lines[line] = self._texts(line)
        if not texts:
            note = "No run fits. Escape shows all again." if line == 0 and self.runs else ""
            return Strip([Segment(" " * self.lines.lead + note, self._style("note"))])
        plain, mark = self._style("cursor" if line == self._cursor else "row"), self._style("mark")
        status = self._style(SYMBOLS[self.shown[line].status][1])
        return Strip(self.lines.line(texts, plain, mark, status)).adjust_cell_length(self.size.width, plain)

    def _style(self, part: str) -> Style:
        return self.get_component_rich_style(f"runs-table--{part}", partial=part == "mark" or part in _COLOURS)
