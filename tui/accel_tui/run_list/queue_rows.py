"""The queue as rows of a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from accel_engine.errors import RunError
from accel_engine.events import ModelBuilt
from accel_engine.run import RunInfo, Status
from accel_engine.run.engine.status import read_info
from accel_engine.run.store.database import reading
from accel_engine.run.store.stored_events import last_event
from accel_engine.run_queue import queue
from accel_engine.run_queue.queue_entries import QueueEntry
from accel_engine.text import printable_fields


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A run of the queue, whose texts are safe for a terminal."""

    entry: QueueEntry
    """Its entry."""
    info: RunInfo | None
    """Its ``meta`` and status; ``None`` if it cannot be read."""
    steps: int = 0
    """Steps taken."""
    progress: float | None = None
    """Share of its steps that are taken, from 0 to 1; ``None`` if unknown."""

    @property
    def status(self) -> Status | None:
        """Its status; ``None`` if it cannot be read."""
        return self.info.status if self.info else None


@dataclass(frozen=True, slots=True)
class QueueList:
    """The queue."""

    rows: tuple[QueueRow, ...] = ()
    """The runs that were started, then those that wait, in their order."""
    at_once: int | None = None
    """Most runs at once; ``None`` for the default."""


class QueueReader:
    """Reads the queue; a run that waits is read once."""

    def __init__(self) -> None:
        self._waiting: dict[str, RunInfo | None] = {}

    def read(self) -> QueueList:
        """Read the queue; this blocks.

        Raises:
            RunError: It cannot be read.
        """
        entries = queue.entries()
        rows = tuple(_started(entry) if entry.is_started else self._waiting_row(entry) for entry in entries)
        self._forget_all_but(entries)
        return QueueList(rows, queue.limit() if entries else None)

    def _waiting_row(self, entry: QueueEntry) -> QueueRow:
        if entry.run not in self._waiting:
            self._waiting[entry.run] = _info(entry.directory)
        return QueueRow(printable_fields(entry), self._waiting[entry.run])

    def _forget_all_but(self, entries: Sequence[QueueEntry]) -> None:
        known = {entry.run for entry in entries if not entry.is_started}
        self._waiting = {run: info for run, info in self._waiting.items() if run in known}


def _info(directory: Path) -> RunInfo | None:
    try:
        with reading(directory) as database:
            return printable_fields(read_info(database))
    except RunError:
        return None


def _started(entry: QueueEntry) -> QueueRow:
    try:
        with reading(entry.directory) as database:
            info, built = read_info(database), last_event(database, ModelBuilt)
            steps = int(database.chunk_from_end()[1])
    except RunError:
        return QueueRow(printable_fields(entry), None)
    total = built.epochs * (built.steps_per_epoch or 0) if built else 0
    return QueueRow(printable_fields(entry), printable_fields(info), steps, min(steps / total, 1.0) if total else None)
