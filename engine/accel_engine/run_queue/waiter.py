"""Starts the runs of the queue when their turn comes."""

import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from accel_engine.errors import AccelError, RunError
from accel_engine.memory import available_memory
from accel_engine.plan import Plan
from accel_engine.process import engine_process
from accel_engine.process.detached import leave
from accel_engine.run.directory import lock
from accel_engine.run.engine.status import Status, read_info
from accel_engine.run.store.database import DATABASE, reading
from accel_engine.run.writing.waiting_run import end_waiting
from accel_engine.run_queue.decision import Decision, FreeDevices, WaitingRun, decide
from accel_engine.run_queue.dependencies import run_status, waits_for
from accel_engine.run_queue.engine_environment import with_devices, working_directory
from accel_engine.run_queue.free_devices import MachineReader, active_runs, is_reserved, occupies_devices
from accel_engine.run_queue.needs import RunNeeds, find_need
from accel_engine.run_queue.queue_database import QueueDatabase
from accel_engine.run_queue.queue_entries import NO_REASON, StoredEntry

POLL_SECONDS = 0.1
"""How often to see whether the queue has changed, or a run has ended."""

LOOK_SECONDS = 1.0
"""How often to measure devices while nothing changes."""

CANCELLED = "cancelled in the queue"

CANCEL_SECONDS = 5.0
"""How long a process may take to end a run that it cancels; then it was killed, and this one does."""


class Waiter:
    """Starts runs until none waits for something that happens without the user. Only one may work at a time.

    Args:
        queue: The queue.
        machine: Reads its accelerators.

    Raises:
        RunError: The queue cannot be read or written. All methods raise it, too.
    """

    def __init__(self, queue: QueueDatabase, machine: MachineReader) -> None:
        self._queue = queue
        self._machine = machine
        self._needs: dict[str, tuple[tuple[object, ...], RunNeeds]] = {}
        self._engines: dict[str, subprocess.Popen[str]] = {}
        self._cancelled: dict[str, float] = {}

    def start_runs(self) -> None:
        """Start what fits, and note why other runs wait."""
        self._recover()
        stored = self._queue.entries()
        candidates = [self._candidate(entry) for entry in stored if entry.is_waiting]
        active = active_runs([entry for entry in stored if entry.state == "started"])
        machine = FreeDevices(self._machine.in_use(), available_memory(), self._queue.at_once)
        decision = decide(candidates, active, machine)
        self._note_reasons(stored, decision)
        for run, devices in decision.starts.items():
            self._start(run, devices)

    def has_work(self) -> bool:
        """Whether a run waits for something that happens without the user."""
        return any(
            entry.state == "cancelled"
            or (entry.is_waiting and not entry.hold_reason and not waits_for(entry.request.after).is_blocked)
            for entry in self._queue.entries()
        )

    def wait_for_change(self) -> None:
        """Wait until the queue has changed or a started run has ended, at most :data:`LOOK_SECONDS`."""
        before, until = self._signature(), time.monotonic() + LOOK_SECONDS
        while time.monotonic() < until and self._signature() == before:
            time.sleep(POLL_SECONDS)

    def close(self) -> None:
        """Leave the engines to themselves."""
        for engine in self._engines.values():
            if engine.poll() is None:
                leave(engine)

    def _signature(self) -> tuple[object, ...]:
        """Changes with the queue, and as engines exit."""
        exited = [run for run, engine in self._engines.items() if engine.poll() is not None]
        return self._queue.data_version(), exited, [lock.is_locked(directory) for directory in self._queue.started()]

    def _recover(self) -> None:
        """Remove entries of runs that have ended, and finish what a process was killed at."""
        self._engines = {run: engine for run, engine in self._engines.items() if engine.poll() is None}
        for entry in self._queue.entries():
            with suppress(RunError):  # the run cannot be read now: its entry does not change
                if entry.state == "cancelled":
                    self._finish_cancelled(entry)
                elif entry.is_waiting and not (entry.directory / DATABASE).is_file():
                    self._queue.remove(entry.run)  # it was deleted
                elif entry.state == "started" and not occupies_devices(entry.directory):
                    self._remove_or_repeat(entry)

    def _finish_cancelled(self, entry: StoredEntry) -> None:
        if time.monotonic() - self._cancelled.setdefault(entry.run, time.monotonic()) >= CANCEL_SECONDS:
            end_waiting(entry.directory, CANCELLED)
            self._queue.remove(entry.run)

    def _remove_or_repeat(self, entry: StoredEntry) -> None:
        """Remove an entry that was started, or let it wait again: the process that started it was killed before."""
        if run_status(entry.directory) is Status.QUEUED:
            self._queue.put(replace(entry, state="waiting", devices=()))
        else:
            self._queue.remove(entry.run)

    def _candidate(self, entry: StoredEntry) -> WaitingRun:
        if entry.hold_reason:
            return WaitingRun(entry.run, entry.request, blocked=entry.hold_reason)
        try:
            return WaitingRun(entry.run, entry.request, self._need(entry), waits_for(entry.request.after).reason)
        except AccelError as error:
            self._hold(entry, str(error))
            return WaitingRun(entry.run, entry.request, blocked=str(error))

    def _need(self, entry: StoredEntry) -> RunNeeds:
        """The needs of a run, which are found again after it was added again."""
        key = (entry.request.devices, entry.added)
        if entry.run not in self._needs or self._needs[entry.run][0] != key:
            plan = _plan(entry.directory)
            self._needs[entry.run] = (
                key,
                find_need(plan, entry.request.devices, self._machine.devices, entry.environment),
            )
        return self._needs[entry.run][1]

    def _note_reasons(self, stored: Sequence[StoredEntry], decision: Decision) -> None:
        known = {entry.run: entry.reason for entry in stored}
        if changed := {run: reason for run, reason in decision.waits.items() if known.get(run) != reason}:
            self._queue.set_reasons(changed)

    def _start(self, run: str, devices: tuple[str, ...]) -> None:
        """Start the engine of a run, unless a user has held or cancelled it or a request has taken its device."""
        with self._queue.transaction():
            entry = self._queue.find(run)
            if entry is None or not entry.is_waiting or entry.hold_reason or any(map(is_reserved, devices)):
                return
            self._queue.put(replace(entry, state="started", devices=devices, reason=NO_REASON))
        try:
            if run_status(entry.directory) is not Status.QUEUED:  # it was ended or started by other means
                self._queue.remove(run)
                return
            environment = with_devices(entry.environment, devices, self._machine.devices)
            with working_directory(entry.folder):
                self._engines[run] = engine_process.start_engine(entry.directory, environment)
        except AccelError as error:
            if not occupies_devices(entry.directory):  # else a process that was killed had started it
                self._hold(entry, f"cannot be started: {error}")

    def _hold(self, entry: StoredEntry, problem: str) -> None:
        with self._queue.transaction():
            found = self._queue.find(entry.run)
            if found and found.state != "cancelled":
                self._queue.put(replace(found, state="waiting", devices=(), hold_reason=problem))


def _plan(directory: Path) -> Plan:
    with reading(directory) as database:
        values = read_info(database).plan_values
    return Plan.from_mapping(values)
