"""The list of runs, a row each."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual import on, work
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import DataTable

from accel_engine.run import RunSummary, Status, list_runs
from accel_tui import figures, names, units

INTERVAL = 2.0
"""Seconds between two looks for runs."""

SYMBOLS: Mapping[Status | None, tuple[str, str]] = {
    Status.STARTING: ("◌", "accent"),
    Status.RUNNING: ("●", "accent"),
    Status.FINISHED: ("✓", "success"),
    Status.STOPPED: ("■", "warning"),
    Status.FAILED: ("✗", "error"),
    Status.LOST: ("?", "error"),
    None: ("!", "warning"),
}
"""What stands before each status, and the theme's colour for it; ``None`` is a run that cannot be read."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table.

    Attributes:
        title: Its header.
        width: In cells.
        text: What a run has in it, given the time now.
        right: Whether it is aligned to the right, as numbers are.
        rank: What is left out first where there is no room: the columns of the highest rank.
    """

    title: str
    width: int
    text: Callable[[RunSummary, float], str]
    right: bool = False
    rank: int = 0


def _value(run: RunSummary, field: str) -> str:
    return str(run.info.values.get(field) or "") if run.info else ""


def _metric(run: RunSummary, name: str) -> str:
    value = (run.metrics or {}).get(name)
    return "—" if value is None else figures.metric(value)


_WIDEST_ID = 40

COLUMNS = (
    Column("status", 12, lambda run, _: f"{SYMBOLS[run.status][0]} {run.status or 'unreadable'}"),
    Column("run", 21, lambda run, _: run.id),
    Column("name", 16, lambda run, _: _value(run, "name") or str(run.membership or ""), rank=7),
    Column("model", 18, lambda run, _: names.end(names.brief(_value(run, "model")), 18), rank=3),
    Column("data", 14, lambda run, _: names.end(names.brief(_value(run, "data")), 14), rank=4),
    Column("strategy", 10, lambda run, _: _value(run, "strategy"), rank=6),
    Column("batch", 6, lambda run, _: _value(run, "batch_size"), right=True, rank=8),
    Column("steps", 7, lambda run, _: figures.compact(run.steps) if run.steps else "—", right=True),
    Column("loss", 7, lambda run, _: _metric(run, "loss"), right=True),
    Column("accuracy", 8, lambda run, _: _metric(run, "accuracy"), right=True, rank=2),
    Column("val loss", 8, lambda run, _: _metric(run, "validation_loss"), right=True, rank=5),
    Column("val acc", 7, lambda run, _: _metric(run, "validation_accuracy"), right=True),
    Column("took", 8, lambda run, _: figures.duration(run.seconds) if run.seconds else "—", right=True, rank=1),
    Column("begun", 8, lambda run, now: units.ago(now - run.info.created) if run.info else "", right=True),
)


def _fitting(room: int, padding: int) -> tuple[Column, ...]:
    """The columns that there is room for, in their order."""
    chosen: set[Column] = set()
    for column in sorted(COLUMNS, key=lambda column: column.rank):
        room -= column.width + 2 * padding
        if room < 0:
            break
        chosen.add(column)
    return tuple(column for column in COLUMNS if column in chosen)


class RunsTable(DataTable[Text]):
    """Runs, newest first, looked for again and again while the table is on the screen.

    The cursor stays on its run while the list changes.
    """

    DEFAULT_CSS = """
    RunsTable {
        width: 1fr;
        height: 1fr;
        background: $background;
        scrollbar-size-vertical: 1;
        overflow-x: hidden;
        &:focus { background-tint: transparent; }
        & > .datatable--header { background: $background; color: $text-disabled; text-style: none; }
        &:focus > .datatable--header { background-tint: transparent; }
        & > .datatable--even-row, &:dark > .datatable--even-row { background: $background; }
        & > .datatable--odd-row { background: $background; }
        &:blur > .datatable--cursor { background: $background; color: $foreground; text-style: none; }
    }
    """
    BINDING_GROUP_TITLE = "In the list of runs"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "Open", id="runs.open", tooltip="Look at the run, live or ended"),
        Binding("j", "cursor_down", "Down", id="runs.down", show=False, tooltip="The next run"),
        Binding("k", "cursor_up", "Up", id="runs.up", show=False, tooltip="The run before"),
    ]

    runs: reactive[tuple[RunSummary, ...] | None] = reactive(None, repaint=False)
    """The runs; ``None`` before they were looked for."""

    @dataclass
    class Listed(Message):
        """The runs were looked through."""

        table: "RunsTable"
        runs: tuple[RunSummary, ...]

        @property
        def control(self) -> "RunsTable":
            """The table that it comes from."""
            return self.table

    @dataclass
    class Opened(Message):
        """Somebody wants to look at a run."""

        run: RunSummary

    def __init__(self) -> None:
        super().__init__(cursor_type="row", cell_padding=1)
        self._columns_shown: tuple[Column, ...] = ()
        self._is_awaited = False

    @property
    def chosen(self) -> RunSummary | None:
        """The run that the cursor is on."""
        if not self.runs or not self.is_valid_coordinate(self.cursor_coordinate):
            return None
        chosen = self.coordinate_to_cell_key(self.cursor_coordinate).row_key.value
        return next((run for run in self.runs if run.id == chosen), None)

    def on_mount(self) -> None:
        """Begin to look."""
        self.set_interval(INTERVAL, self.look)
        self.watch(self.app, "theme", self._show, init=False)

    def look(self) -> None:
        """Look for runs, unless nobody would see them."""
        if self.size and self.screen.is_current:
            self._list()

    def watch_runs(self) -> None:
        """Show them."""
        self._show()

    def action_select_cursor(self) -> None:
        """Open the run under the cursor; who asks before the runs were looked for is served once they were."""
        self._is_awaited = self.runs is None
        super().action_select_cursor()

    @on(Resize)
    def _lay_out(self) -> None:
        if self.runs is None:
            self.look()
        self._show()

    @work(thread=True, exclusive=True, exit_on_error=False, group="runs")
    def _list(self) -> None:
        self.post_message(self.Listed(self, tuple(list_runs())))

    @on(Listed)
    def _take(self, event: Listed) -> None:
        self.runs = event.runs
        self._show()  # although nothing else changed, time did
        if self._is_awaited:
            self.action_select_cursor()

    @on(DataTable.RowSelected)
    def _open(self, event: DataTable.RowSelected) -> None:
        event.stop()
        if self.chosen:
            self.post_message(self.Opened(self.chosen))

    def _show(self) -> None:
        """Bring the cells to where they should be, one by one unless rows or columns are others."""
        runs, now = self.runs or (), time.time()
        room = self.size.width - self.styles.scrollbar_size_vertical
        columns = _fitting(room, self.cell_padding) if runs else ()
        ids = [run.id for run in runs]
        if columns == self._columns_shown and ids == [key.value for key in self.rows]:
            for run in runs:
                for column in columns:
                    cell = self._cell(run, column, now)
                    if self.get_cell(run.id, column.title) != cell:
                        self.update_cell(run.id, column.title, cell)
            return
        kept, self._columns_shown = self.chosen, columns
        self.clear(columns=True)
        spare = room - sum(column.width + 2 * self.cell_padding for column in columns)
        for column in columns:
            title = Text(column.title, justify="right" if column.right else "left")
            # The id says what a run is, so that it gets what the other columns leave.
            width = column.width + max(0, min(spare, _WIDEST_ID - column.width)) * (column.title == "run")
            self.add_column(title, width=width, key=column.title)
        for run in runs:
            self.add_row(*(self._cell(run, column, now) for column in columns), key=run.id)
        if kept and kept.id in ids:
            self.move_cursor(row=ids.index(kept.id))

    def _cell(self, run: RunSummary, column: Column, now: float) -> Text:
        style = self.app.theme_variables[SYMBOLS[run.status][1]] if column.title == "status" else ""
        return Text(
            column.text(run, now),
            style=style,
            justify="right" if column.right else "left",
            no_wrap=True,
            overflow="ellipsis",
        )
