"""The queue as rows of a table, with how long each run is expected to train."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from accel_engine.devices.device_types import Device
from accel_engine.errors import AccelError, RunError
from accel_engine.events import ModelBuilt, RunStarted
from accel_engine.plan import Plan
from accel_engine.plan.fields import affecting
from accel_engine.run import RunInfo, Status
from accel_engine.run.directory.run_paths import runs_directory
from accel_engine.run.engine.status import read_info
from accel_engine.run.runs.devices_in_use import devices_in_use
from accel_engine.run.runs.listing import RunList, RunSummary
from accel_engine.run.store.database import RunDatabase, reading
from accel_engine.run.store.schema import ChunkRow
from accel_engine.run.store.stored_events import last_event
from accel_engine.run_queue import queue
from accel_engine.run_queue.dependencies import run_status
from accel_engine.run_queue.needs import RunNeeds, find_need
from accel_engine.run_queue.queue_entries import QueueEntry, QueueRequest
from accel_engine.text import printable_fields

_TAKE_TIME = sorted((affecting("speed") | affecting("steps") | affecting("intervals")) - {"epochs"})


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
    seconds: float | None = None
    """How long it is expected to train from now on, or from its start if it waits; ``None`` if unknown."""
    need: RunNeeds | None = None
    """What a run that waits needs to start; ``None`` if unknown."""
    after: tuple[str, ...] = ()
    """Ids of the live runs that it waits for."""

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
    others: tuple[QueueRow, ...] = ()
    """The live runs of this machine that were not started from the queue."""


class QueueReader:
    """Reads the queue; a run that waits is read once."""

    def __init__(self) -> None:
        self._waiting: dict[str, RunInfo | None] = {}
        self._needs: dict[tuple[object, ...], RunNeeds | None] = {}
        self._runs = RunList(runs_directory())
        self._listed: tuple[object, ...] | None = None

    def read(self, devices: Sequence[Device] = ()) -> QueueList:
        """Read the queue; this blocks. Of an empty queue, neither the limit nor other live runs are read.

        Args:
            devices: The machine's devices.

        Raises:
            RunError: The queue cannot be read.
        """
        entries = queue.entries()
        if not entries:
            return QueueList()
        if (known := tuple((entry.run, entry.is_started) for entry in entries)) != self._listed:
            self._runs.refresh()
            self._listed = known
        started = [_started(entry) for entry in entries if entry.is_started]
        others = [_started(entry) for entry in _live_besides(entries)]
        waiting = [self._waiting_row(entry, devices) for entry in entries if not entry.is_started]
        self._forget_all_but(entries)
        return QueueList((*started, *waiting), queue.limit(), tuple(others))

    def _waiting_row(self, entry: QueueEntry, devices: Sequence[Device]) -> QueueRow:
        if entry.run not in self._waiting:
            self._waiting[entry.run] = _info(entry.directory)
        info = self._waiting[entry.run]
        plan, need, seconds = info.plan if info else None, None, None
        if plan:
            key = (entry.run, entry.request.devices, len(devices))
            if key not in self._needs:
                self._needs[key] = _need(plan, entry.request.devices, devices)
            need, seconds = self._needs[key], _expected_seconds(plan, self._runs.runs)
        after = tuple(run for run in entry.request.after if _is_live(run))
        return QueueRow(printable_fields(entry), info, seconds=seconds, need=need, after=after)

    def _forget_all_but(self, entries: Sequence[QueueEntry]) -> None:
        known = {entry.run for entry in entries if not entry.is_started}
        self._waiting = {run: info for run, info in self._waiting.items() if run in known}
        self._needs = {key: need for key, need in self._needs.items() if key[0] in known}


def _expected_seconds(plan: Plan, runs: Iterable[RunSummary]) -> float | None:
    """Seconds that a plan trains, by the newest finished run with the same fields that take time, except epochs.

    Args:
        plan: The plan.
        runs: Runs of this machine, newest first.
    """
    wanted = [getattr(plan, name) for name in _TAKE_TIME]
    for each in runs:
        other = each.info.plan if each.info and each.status is Status.FINISHED and each.seconds else None
        if other and [getattr(other, name) for name in _TAKE_TIME] == wanted:
            return each.seconds * plan.epochs / other.epochs
    return None


def _info(directory: Path) -> RunInfo | None:
    try:
        with reading(directory) as database:
            return printable_fields(read_info(database))
    except RunError:
        return None


def _need(plan: Plan, wanted: int | None, devices: Sequence[Device]) -> RunNeeds | None:
    try:
        # Without the memory: what will be free then is unknown.
        return replace(find_need(plan, wanted, devices, {}), memory=0)
    except AccelError:
        return None


def _is_live(run: str) -> bool:
    try:
        status = run_status(runs_directory() / run)
    except RunError:
        return True
    return status is not None and status.live


def _live_besides(entries: Sequence[QueueEntry]) -> list[QueueEntry]:
    """Other live runs as if the queue had started them."""
    known = {entry.directory for entry in entries}
    return [
        QueueEntry(each.run, runs_directory() / each.run, QueueRequest(), 0, is_started=True, devices=each.devices)
        for each in devices_in_use(except_for=known)
    ]


def _started(entry: QueueEntry) -> QueueRow:
    try:
        with reading(entry.directory) as database:
            info, built = read_info(database), last_event(database, ModelBuilt)
            steps = int(database.chunk_from_end()[1])
            total = built.epochs * (built.steps_per_epoch or 0) if built else 0
            seconds = _seconds_left(database, steps, total) if info.status is Status.RUNNING else None
    except RunError:
        return QueueRow(printable_fields(entry), None)
    progress = min(steps / total, 1.0) if total else None
    return QueueRow(printable_fields(entry), printable_fields(info), steps, progress, seconds)


def _seconds_left(database: RunDatabase, steps: int, total: int) -> float | None:
    """Seconds for the steps that are left, at the mean rate since the engine's first step, pauses included."""
    started = last_event(database, RunStarted)
    first = started and database.row("chunk", ChunkRow, "WHERE first_step >= ? ORDER BY id", (started.first_step,))
    if not first or not total or steps <= first.first_step:
        return None
    pace = (time.time() - first.started) / (steps - first.first_step)
    return max(pace * (total - steps), 0.0)
