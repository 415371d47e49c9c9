"""Queue screen: the runs that wait for free devices, their order, and why each waits."""

import asyncio
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import ClassVar

from textual import getters, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import ScreenResume
from textual.widgets import Static

from accel_engine.errors import AccelError
from accel_engine.run_queue import queue
from accel_engine.text import printable
from accel_engine.words import numbers
from accel_tui.app_protocol import Screens, app_of, open_screen
from accel_tui.formatting.bars import bar
from accel_tui.formatting.table_columns import ALL_ROOM, Column
from accel_tui.run_list.columns import SYMBOLS
from accel_tui.run_list.queue_rows import QueueList, QueueReader, QueueRow
from accel_tui.run_list.queue_times import PlannedRun, planned_runs
from accel_tui.screens.asking import CANCEL, QuestionScreen, awaiting
from accel_tui.screens.entry_screen import Entry, EntryScreen
from accel_tui.screens.run_actions import RunActionsScreen
from accel_tui.screens.run_questions import CANCEL_RUN, STOP, cancel_question
from accel_tui.widgets.key_bar import KeyBar, TopBar
from accel_tui.widgets.queue_timeline import QueueTimeline
from accel_tui.widgets.table import RowDetails, Table

BAR = 16
"""Cells of a progress bar."""

_STATE_WIDTH = 30


class QueueTable(Table[PlannedRun]):
    """The runs that were started from the queue, then those that wait."""

    BINDING_GROUP_TITLE = "List of the queue"

    def key_of(self, row: PlannedRun) -> Hashable:
        return row.entry.run

    def show_queue(self, rows: Sequence[PlannedRun]) -> None:
        """Show the queue; columns that are empty in all rows are left out."""
        self.show_rows(rows, [column for column in COLUMNS if any(column.text(row, 0.0) for row in rows)])


def _symbol(planned: PlannedRun) -> tuple[str, str]:
    """The symbol of a run's state and its colour."""
    if planned.entry.is_started:
        return SYMBOLS[planned.row.status]
    return ("‖", "warning") if planned.entry.is_held else ("○", "")


def _priority(planned: PlannedRun) -> str:
    priority = planned.entry.request.priority
    return f"{priority:+}" if priority else ""


def _state(planned: PlannedRun) -> str:
    """The progress of a run, or why it waits."""
    row = planned.row
    if not planned.entry.is_started:
        return planned.entry.waits
    status = str(row.status or "cannot be read")
    if row.progress is None:
        return status
    return f"{status:8} {bar(row.progress, BAR, rest=' ')} {int(100 * row.progress):3}%"


def _from_now(seconds: float | None) -> str:
    return "?" if seconds is None else f"in {numbers.duration(seconds)}" if seconds else "now"


COLUMNS: tuple[Column[PlannedRun], ...] = (
    Column(
        "", 5, lambda row, _: f"{_symbol(row)[0]} {row.entry.position or '':>3}", colour=lambda row: _symbol(row)[1]
    ),
    Column("run", 18, lambda row, _: row.entry.run, widest=28),
    Column("prio", 4, lambda row, _: _priority(row), right=True, drop_priority=2),
    Column("devices", 9, lambda row, _: row.entry.on_devices, drop_priority=1),
    Column(
        "starts", 9, lambda row, _: "" if row.entry.is_started else _from_now(row.start), right=True, drop_priority=4
    ),
    Column("ends", 9, lambda row, _: _from_now(row.end), right=True, drop_priority=3),
    Column(
        "state",
        _STATE_WIDTH,
        lambda row, _: _state(row),
        colour=lambda row: "accent" if row.entry.is_started else "warning" if row.entry.is_held else "note",
        widest=ALL_ROOM,
    ),
)
"""The columns of the queue, whose order is the order of the runs."""


class QueueDetail(RowDetails):
    """Title, why it waits in full, command, and what it asks for."""

    def show_row(self, row: QueueRow | None) -> None:
        """Show the details of a run."""
        self.update(_detail(row) if row else Content(""))


def _detail(row: QueueRow) -> Content:
    entry, plan = row.entry, row.info.plan if row.info else None
    since = f"  queued {numbers.ago(time.time() - entry.added)}" if entry.added else ""
    lines = [Content.assemble((row.info.title if row.info else entry.run, "bold"), (since, "$text-muted"))]
    if entry.is_started:
        where = f" on {', '.join(entry.devices)}" if entry.devices else ""
        lines.append(Content(f"{row.status or 'cannot be read'}{where}, {numbers.counted(row.steps, 'step')}"))
    else:
        lines.append(Content.styled(_sentence(row), "$text-warning" if entry.is_held else ""))
    asks = [f"after {', '.join(entry.request.after)}"] if entry.request.after else []
    if entry.request.group:
        most = f", at most {entry.request.at_once} at once" if entry.request.at_once else ""
        asks.append(f"of {entry.request.group}{most}")
    if asks:
        lines.append(Content.styled("; ".join(asks), "$text-muted"))
    lines.append(Content(f"$ {plan.command()}" if plan else "the plan cannot be read on this machine"))
    return Content("\n").join(lines)


def _sentence(row: QueueRow) -> str:
    text = row.entry.waits
    if row.entry.is_held:
        return text[:1].upper() + text[1:]
    return f"Waits: {text}" if row.entry.reason else "Waits"


INTERVAL = 1.0
"""Seconds between two readings of the queue."""

EMPTY = "The queue of this machine is empty. Press N for a new run, then a to let it wait for free devices."
"""Text where no run waits."""

_WAITING = frozenset({"reorder", "prioritize", "hold", "release"})
"""Actions on a run that waits."""

_LIMIT_DETAIL = "auto: one per accelerator, or one on the CPU. Runs that train are not stopped."


class QueueScreen(RunActionsScreen):
    """Lists the queue, and changes it."""

    CSS_PATH = "queue_screen.tcss"
    AUTO_FOCUS = "QueueTable"
    BINDING_GROUP_TITLE = "Queue"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("K,shift+up", "reorder(-1)", "Move up", id="queue.move-up", tooltip="Let the run start earlier"),
        Binding("J,shift+down", "reorder(1)", "Move down", id="queue.move-down", tooltip="Let the run start later"),
        Binding("h", "hold", "Hold", id="queue.hold", tooltip="Let the run wait until you release it"),
        Binding("h", "release", "Release", id="queue.hold", tooltip="Let the held run start when its turn comes"),
        Binding("delete,backspace", "cancel", "Cancel run", id="queue.cancel", tooltip="Cancel the run; asks first"),
        Binding("plus,equals_sign", "prioritize(1)", id="queue.raise", tooltip="Raise the priority of the run"),
        Binding("minus", "prioritize(-1)", id="queue.lower", tooltip="Lower the priority of the run"),
        Binding("e", "limit", "Limit", id="queue.limit", tooltip="Change how many runs train at once"),
        Binding("Q", "back", "Back", id="queue.back", tooltip="Go back, with the key that opened this screen"),
    ]

    _table = getters.query_one(QueueTable)

    def __init__(self) -> None:
        super().__init__()
        self._reader = QueueReader()
        self._queue = QueueList()
        self._planned: Sequence[PlannedRun] = ()

    def compose(self) -> ComposeResult:
        yield TopBar("Queue")
        yield Static("reading the queue…", id="about", markup=False)
        yield QueueTable().add_class("panel")
        yield QueueTimeline()
        yield QueueDetail().add_class("panel")
        yield KeyBar()

    def on_mount(self) -> None:
        self.set_interval(INTERVAL, self.take_changes)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer what can be done with the current run."""
        row = self._table.current if self.is_mounted else None
        if action not in (*_WAITING, "cancel"):
            return True
        if row is None or (action in _WAITING and row.entry.is_started):
            return False
        if action in ("hold", "release"):
            return row.entry.is_held is (action == "release")
        return True

    def action_hold(self) -> None:
        self._change_current(queue.hold)

    def action_release(self) -> None:
        self._change_current(queue.release)

    def action_reorder(self, by: int) -> None:
        """Let the current run start before or after others."""
        if row := self._table.current:
            self._change_current(queue.move, max(row.entry.position + by, 1))

    def action_prioritize(self, by: int) -> None:
        if row := self._table.current:
            self._change_current(queue.set_priority, row.entry.request.priority + by)

    @awaiting
    async def action_cancel(self) -> None:
        """Ask, then cancel the current run, or stop it."""
        if row := self._table.current:
            run, detail = row.entry.run, "It was started already. Continue it later from the checkpoint."
            stop = QuestionScreen(f"Stop {run}?", detail, (CANCEL, STOP))
            answer = await self.ask(stop if row.entry.is_started else cancel_question(run, "c"))
            if answer in (CANCEL_RUN, STOP.id):
                await self.change(partial(queue.cancel, run))

    @awaiting
    async def action_limit(self) -> None:
        """Ask for the limit, then change it."""
        text = await self.ask(LimitScreen(self._queue.at_once))
        if text is not None:
            await self.change(partial(queue.set_limit, queue.parse_limit(text)))

    @awaiting
    async def _change_current(self, change: Callable[..., None], *arguments: int) -> None:
        if row := self._table.current:
            await self.change(partial(change, row.entry.run, *arguments))

    @on(ScreenResume)
    def take_changes(self) -> None:
        """Read the queue, unless another screen covers this one."""
        if self.is_current:
            self._read()

    @work(exclusive=True, exit_on_error=False, group="read")
    async def _read(self) -> None:
        try:
            await asyncio.to_thread(queue.ensure_waiter)
            inventory = app_of(self).inventory
            devices = inventory.devices if inventory else ()
            self._show(await asyncio.to_thread(self._reader.read, devices))
        except AccelError as error:
            self.query_one("#about", Static).update(printable(str(error)))

    def _show(self, found: QueueList) -> None:
        self._queue = found
        started = sum(row.entry.is_started for row in found.rows)
        most = f"at most {found.at_once} at once" if found.at_once else "one at once on each accelerator, or the CPU"
        about = f"{started} of these running, {len(found.rows) - started} queued, {most}" if found.rows else ""
        self.query_one("#about", Static).update(about)
        self.set_class(not found.rows, "-empty")
        self._table.empty = EMPTY
        self._planned = planned_runs(found)
        by_run = {each.entry.run: each for each in self._planned}
        self._table.show_queue([by_run[row.entry.run] for row in found.rows])

    @on(QueueTable.Moved)
    def _describe(self) -> None:
        current = self._table.current
        self.query_one(QueueDetail).show_row(current.row if current else None)
        self.query_one(QueueTimeline).show(self._planned, current.entry.run if current else "")
        self.refresh_bindings()

    @on(QueueTable.Opened)
    def _open(self, event: QueueTable.Opened) -> None:
        open_screen(self, Screens.RUN, event.row.entry.directory)


class LimitScreen(EntryScreen[str]):
    """Asks for a limit; returns its text.

    Args:
        current: The current limit; ``None`` for the default.
    """

    def __init__(self, current: int | None) -> None:
        super().__init__("Most runs at once", _LIMIT_DETAIL, Entry("limit", str(current or "auto")))

    def parse(self, texts: Mapping[str, str]) -> str:
        """Check a limit."""
        queue.parse_limit(texts["limit"])
        return texts["limit"]
