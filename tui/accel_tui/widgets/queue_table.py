"""The list of the queue: runs that were started from it, then those that wait, in order; and the details of one."""

import time
from collections.abc import Hashable, Sequence

from textual.content import Content
from textual.widgets import Static

from accel_engine.words import numbers
from accel_tui.formatting.table_columns import ALL_ROOM, Column
from accel_tui.run_list.columns import SYMBOLS
from accel_tui.run_list.queue_rows import QueueRow
from accel_tui.widgets.table import Table

BAR = 16
"""Cells of a progress bar."""

_STATE_WIDTH = 30


class QueueTable(Table[QueueRow]):
    """The runs that were started from the queue, then those that wait."""

    BINDING_GROUP_TITLE = "List of the queue"

    def key_of(self, row: QueueRow) -> Hashable:
        """The id of a run."""
        return row.entry.run

    def show_queue(self, rows: Sequence[QueueRow]) -> None:
        """Show the queue; columns that are empty in all rows are left out."""
        self.show_rows(rows, [column for column in COLUMNS if any(column.text(row, 0.0) for row in rows)])


def _symbol(row: QueueRow) -> tuple[str, str]:
    """The symbol of a run's state and its colour."""
    if row.entry.is_started:
        return SYMBOLS[row.status]
    return ("‖", "warning") if row.entry.is_held else ("○", "")


def _priority(row: QueueRow) -> str:
    priority = row.entry.request.priority
    return f"{priority:+}" if priority else ""


def _state(row: QueueRow) -> str:
    """The progress of a run, or why it waits."""
    if not row.entry.is_started:
        return row.entry.waits
    status = str(row.status or "cannot be read")
    if row.progress is None:
        return status
    done = round(row.progress * BAR)
    return f"{'━' * done}{'─' * (BAR - done)} {int(100 * row.progress):3}%  {status}"


COLUMNS: tuple[Column[QueueRow], ...] = (
    Column(
        "", 5, lambda row, _: f"{_symbol(row)[0]} {row.entry.position or '':>3}", colour=lambda row: _symbol(row)[1]
    ),
    Column("run", 18, lambda row, _: row.entry.run, widest=28),
    Column("prio", 4, lambda row, _: _priority(row), right=True, drop_priority=2),
    Column("devices", 9, lambda row, _: row.entry.on_devices, drop_priority=1),
    Column(
        "state",
        _STATE_WIDTH,
        lambda row, _: _state(row),
        colour=lambda row: "accent" if row.entry.is_started else "warning" if row.entry.is_held else "note",
        widest=ALL_ROOM,
    ),
)
"""The columns of the queue, whose order is the order of the runs."""


class QueueDetail(Static):
    """Title, why it waits in full, command, and what it asks for."""

    DEFAULT_CSS = """
    QueueDetail {
        height: auto;
        min-height: 4;
        max-height: 7;
        padding: 0 1;
        border-top: solid $border;
    }
    """

    def __init__(self) -> None:
        super().__init__(markup=False)

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
