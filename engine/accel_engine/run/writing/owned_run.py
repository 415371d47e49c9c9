"""A run that this process writes: its open database, its lock, its directory and its disk."""

import os
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from accel_engine import clock
from accel_engine.errors import RunError
from accel_engine.events import EpochEnded, Event, Outcome, RunEnded, RunStarted, Warned, to_stored
from accel_engine.json_values import encode
from accel_engine.run.directory.disk_problem import DiskProblem, DiskWait, waits_for_disk
from accel_engine.run.directory.lock import WriterLock
from accel_engine.run.directory.run_paths import check_is_here
from accel_engine.run.engine.memory_loss import KillCounts, count_kills, log_size
from accel_engine.run.engine.ownership import already_training_error
from accel_engine.run.engine.process_identity import ProcessIdentity, machine_id
from accel_engine.run.engine.status import Status, read_info
from accel_engine.run.store.database import DATABASE, RunDatabase
from accel_engine.run.store.meta import read_meta
from accel_engine.run.store.sample_packing import UnwrittenSamples
from accel_engine.run.store.schema import check_times
from accel_engine.run.store.stored_events import last_event
from accel_engine.run.writing.step_writer import StepWriter

LOCK_TIMEOUT_SECONDS = 60.0
"""How long an engine waits for another process to release the database or the run's lock."""

Result = TypeVar("Result")


class OwnedRun:
    """A run that this process has open, and that only it writes once it has begun. Thread-safe.

    Args:
        directory: The run's directory.
        waits: Whether writes wait for a disk that is full or broken, and repeat until it has room.

    Attributes:
        directory: The run's directory.
        disk: Tells whether writes wait, and can end that.

    Raises:
        RunError: There is no run, or it cannot be written. All methods raise it, too.
    """

    def __init__(self, directory: Path, *, waits: bool = False) -> None:
        check_is_here(directory, "it is only written there")
        self.directory = directory
        self._loss = ""
        self.disk = DiskWait(directory, self.show_problem)
        self._waits = waits
        self._problem: DiskProblem | None = None
        self._unwritten_samples = UnwrittenSamples()
        self._lock = threading.Lock()
        self._writer_lock: WriterLock | None = None
        self._has_begun = False
        self._database = (
            self.disk.repeat(lambda: RunDatabase(directory), lambda *_: None) if waits else RunDatabase(directory)
        )
        self._process = encode(ProcessIdentity.of(os.getpid()))
        self._kills = KillCounts()
        self._steps = StepWriter()
        try:
            with self._writing():
                self._database.set_lock_timeout(LOCK_TIMEOUT_SECONDS)
                self._steps.load(self._database)
        except RunError:
            self._database.close()
            raise

    def begin(self, started: RunStarted | None = None) -> None:
        """Lock the run: only this process writes it from now on.

        Args:
            started: Written in the same transaction, so that the run does not look ended to a reader;
                steps from its first step on are deleted.

        Raises:
            RunError: Another process writes the run, or the run cannot be locked.
        """
        was_locked = self._writer_lock is not None
        try:
            self._begin(started)
        except BaseException:
            if not was_locked:
                self._release()
            raise

    @waits_for_disk
    def _begin(self, started: RunStarted | None) -> None:
        with self._writing():
            self._writer_lock = self._writer_lock or self._acquire()
            self._claim(started)

    def _acquire(self) -> WriterLock:
        """Acquire the lock, waiting for the previous engine if it has ended the run but not exited yet."""
        deadline = time.monotonic() + LOCK_TIMEOUT_SECONDS
        while True:
            try:
                return WriterLock(self.directory)
            except BlockingIOError:
                info = read_info(self._database, watched=False)
                if info.status is not Status.STARTING or time.monotonic() > deadline:
                    raise already_training_error(info) from None
            time.sleep(0.01)

    def _claim(self, started: RunStarted | None) -> None:
        self._kills = count_kills()
        with self._database.transaction():
            info = read_info(self._database, watched=False)
            is_pending = info.status is Status.STARTING
            if is_pending and info.pid not in (None, os.getpid()):
                raise already_training_error(info)  # it is assigned to another process, which has not started yet
            if not is_pending:  # else reopening has done it, and commands sent since are for this engine
                self._database.reject_commands()
            self._database.set_meta(
                pid=os.getpid(),
                process=self._process,
                machine=machine_id(),
                host=socket.gethostname(),
                clock_offset=clock.OFFSET,
                heartbeat=clock.boot_seconds(),
                written=time.time(),
                kills=encode(self._kills),
                memory_loss=None,
                log_start=log_size(self.directory),
                pending=None,
                queued=None,
                before=None,
            )
            if started:
                self._delete_after(started.first_step)
                self._insert(started)
        self._has_begun = True

    @waits_for_disk
    def write_event(self, event: Event) -> None:
        """Add an event."""
        with self._writing():
            self._insert(event)

    def heartbeat(self) -> None:
        """Write the engine's heartbeat, a monotonic time; see :mod:`accel_engine.run.engine.ownership`.

        Raises:
            RunError: The run is no longer in its directory, or another process has taken it over. Nothing more can be
                written.
        """
        self.check_directory()  # first: SQLite does not write a deleted file that has no WAL
        with self._writing():
            if not self._has_begun:  # another thread is about to begin it
                return
            if not self._database.beat(self._process, clock.boot_seconds(), time.time()):
                self._close()
                raise RunError(f"another process has taken over run {self.directory.name}")
            if (kills := count_kills()) != self._kills:  # of other processes, as this one lives
                self._database.set_meta(kills=encode(kills))
                self._kills = kills

    def check_directory(self) -> None:
        """End the run if it is no longer in its directory: what is written there would be in another run, or lost.

        Raises:
            RunError: The directory, its database or its lock was deleted, moved or replaced.
        """
        with self._writing():
            if self._loss:
                raise RunError(self._loss)
            if self._writer_lock is None or (self._writer_lock.is_current and self._has_current_file()):
                return
            reason = _how_lost(self.directory)
            with suppress(RunError):  # it does not write a deleted file that has no WAL
                if self._database.beat(self._process, clock.boot_seconds(), time.time()):
                    self._write_end(reason)  # for whoever has the file open, and where it was moved to
                else:
                    reason = "another process has taken over"
            self._close()
            self._loss = f"run {self.directory.name} ends: {reason}"
            raise RunError(self._loss)

    def _has_current_file(self) -> bool:
        """Whether the file in the directory is the open one; some file systems change the numbers of files."""
        if self._database.is_current():
            return True
        with suppress(RunError), closing(RunDatabase(self.directory, read_only=True)) as other:
            open_one, found = read_meta(self._database), read_meta(other)
            return all(open_one.get(key) == found.get(key) for key in ("process", "heartbeat"))
        return False

    def _write_end(self, reason: str) -> None:
        started, epoch = last_event(self._database, RunStarted), last_event(self._database, EpochEnded)
        now = clock.now()
        ended = RunEnded(
            time=now,
            outcome=Outcome.FAILED,
            steps=self._steps.end,
            epochs=epoch.epoch if epoch else 0,
            seconds=now - started.time if started else 0.0,
            reason=reason,
            hint="if it was moved, continue it with its new directory: accel-tui continue DIRECTORY",
        )
        self._insert(ended)

    def close(self) -> None:
        """Close the database and release the lock."""
        with self._writing():
            self._close()

    def _close(self) -> None:
        self._database.close()
        self._release()

    def _release(self) -> None:
        if self._writer_lock:
            self._writer_lock.release()
            self._writer_lock = None

    def wait_for_disk(self, write: Callable[[], Result]) -> Result:
        """Call a function that writes files of the run, again and again while the disk is full or broken.

        Args:
            write: Writes; a call after one that failed must do all of it.
        """
        return self._repeat(write, self._report_wait)

    def _repeat(self, write: Callable[[], Result], on_success: Callable[[DiskProblem, float], object]) -> Result:
        try:
            return self.disk.repeat(write, on_success) if self._waits else write()
        except Exception:
            self.check_directory()
            raise

    def _report_wait(self, problem: DiskProblem, seconds: float) -> None:
        dropped = self._unwritten_samples.take_dropped()
        missing = f"; {dropped:,} device samples that did not fit in memory are missing" if dropped else ""
        waited = f"{problem}: waited {seconds:.0f} s {problem.wanted}{missing}"
        self.write_event(Warned(time=clock.now(), message=waited))

    def show_problem(self, problem: DiskProblem | None) -> None:
        """Let readers know what the writer of the run waits for; ``None`` for nothing."""
        self._problem = problem
        if self._writer_lock:
            self._writer_lock.set_flag(None if problem is None else list(DiskProblem).index(problem))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._lock:
            end = self._steps.end
            try:
                yield
            except RunError as error:
                self._steps.end = end  # what was deleted is there again
                if getattr(error.__cause__, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY:
                    self._reopen()
                raise

    def _reopen(self) -> None:
        """Open the database again: SQLite keeps it read-only if the disk fails while it is opened."""
        with suppress(RunError):
            database = RunDatabase(self.directory)
            if database.file != self._database.file:  # another run's: the next heartbeat saves this one
                database.close()
                return
            self._database.close()
            self._database = database
            self._database.set_lock_timeout(LOCK_TIMEOUT_SECONDS)

    def _insert(self, event: Event) -> None:
        check_times(event.time)
        self._database.add_event(event.time, event.kind(), to_stored(event))

    def _delete_after(self, step: int) -> None:
        """Delete the steps, diagnostics and media after those that training continues from."""
        self._steps.delete(self._database, step)
        self._database.delete_diagnostics(step)
        self._database.delete_media(step)


def _how_lost(directory: Path) -> str:
    if not directory.is_dir():
        return f"its directory {directory} was deleted or moved"
    if not (directory / DATABASE).exists():
        return f"its file {directory / DATABASE} was deleted or moved"
    return f"its directory {directory} or a file of the run in it was replaced"
