"""Writes a run's events, steps, samples, diagnostics and media."""

import json
import os
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from accel_engine import clock
from accel_engine.devices.device_types import Sample
from accel_engine.errors import RunError
from accel_engine.events import Event, RunStarted, Warned, to_stored
from accel_engine.run import lost_directory
from accel_engine.run.commands import Command
from accel_engine.run.connection import SCHEMA_VERSION, connect, explained
from accel_engine.run.disk_problem import DiskProblem
from accel_engine.run.disk_wait import DiskWait, waits_for_disk
from accel_engine.run.held_samples import HeldSamples
from accel_engine.run.lock import WriterLock
from accel_engine.run.memory_loss import log_size
from accel_engine.run.out_of_memory_kills import KillCounts, count_kills
from accel_engine.run.overwritten import OverwriteCheck
from accel_engine.run.ownership import already_training_error
from accel_engine.run.process_identity import ProcessIdentity, machine_id
from accel_engine.run.sample_packing import SamplePacker
from accel_engine.run.schema import SPANS
from accel_engine.run.status import Status, read_info
from accel_engine.run.stored_events import last_event
from accel_engine.run.whole_rows import MAX_CHUNK, MAX_STEP, MAX_TIME

if TYPE_CHECKING:  # NumPy is slow to import, and creating a run does not need it
    import numpy as np
    import numpy.typing as npt

    from accel_engine.plan import Plan
    from accel_engine.plan.memory_cures import MemoryFacts
    from accel_engine.run.diagnostics import DiagnosticsItem
    from accel_engine.run.media import MediaItem

LOCK_TIMEOUT_SECONDS = 60.0
"""How long an engine waits for another process to release the database or the run's lock."""

Result = TypeVar("Result")

MAX_MEDIA_BYTES = 512 << 20
"""Most that all images, texts and histograms of a run take, compressed."""


class RunWriter:
    """Writes one run. Thread-safe.

    Args:
        directory: The run's directory.
        waits: Whether writes wait for a disk that is full or broken, and repeat until it has room: all but samples,
            which are held in memory, heartbeats and media.

    Attributes:
        directory: The run's directory; another one after the run was moved, or deleted and saved.
        disk: Tells whether writes wait, and can end that.
        directory_loss: What happened to the directory that the run had before; empty if nothing did.

    Raises:
        RunError: There is no run, or it cannot be written. All methods raise it, too.
    """

    def __init__(self, directory: Path, *, waits: bool = False) -> None:
        self.directory = directory
        self.directory_loss = ""
        self.disk = DiskWait(directory, self.show_problem)
        self._waits = waits
        self._problem: DiskProblem | None = None
        self._held_samples = HeldSamples()
        self._lock = threading.Lock()
        self._writer_lock: WriterLock | None = None
        self._database = self.disk.repeat(lambda: connect(directory), lambda *_: None) if waits else connect(directory)
        self._process = ProcessIdentity.of(os.getpid()).to_json()
        self._overwrite_check = OverwriteCheck(self._process)
        self._packer = SamplePacker()
        self._media_bytes: int | None = None
        self._kills = KillCounts()
        self._step = 0
        try:
            with self._writing():
                self._database.set_lock_timeout(LOCK_TIMEOUT_SECONDS)
                self._series = self._database.series()
                self._step = self._database.chunk_from_end()[1]
        except RunError:
            self._database.close()
            raise

    @waits_for_disk
    def write_plan(self, plan: "Plan") -> None:
        """Replace the run's plan, whose model ``auto`` is known now."""
        with self._writing():
            self._database.set_meta(plan=plan.to_json())

    @waits_for_disk
    def settle_log(self) -> None:
        """Note that what the log says so far is settled: it does not explain how the engine is lost later."""
        with self._writing():
            self._database.set_meta(log_start=log_size(self.directory))

    @waits_for_disk
    def write_memory_facts(self, facts: "MemoryFacts") -> None:
        """Write what decides how the run trains on if memory runs out, for a process that starts it again."""
        with self._writing():
            self._database.set_meta(memory=facts.to_json())

    def write_values(self, values: Mapping[str, Any]) -> None:
        """Replace the known plan fields of a script's run."""
        with self._writing():
            self._database.set_meta(plan=json.dumps(values))

    def begin(self, started: RunStarted | None = None) -> None:
        """Lock the run: only this process writes it from now on.

        Args:
            started: Written in the same transaction, so that the run does not look ended to a reader;
                steps from its first step on are deleted.

        Raises:
            RunError: Another process writes the run, or it cannot be locked.
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
                self._database.reject_commands(time.time())
            self._database.upgrade()
            self._database.set_meta(
                schema=SCHEMA_VERSION,
                pid=os.getpid(),
                process=self._process,
                pid_started=None,  # of version 1
                machine=machine_id(),
                host=socket.gethostname(),
                clock_offset=clock.OFFSET,
                heartbeat=clock.boot_seconds(),
                written=time.time(),
                kills=self._kills.to_json(),
                memory_loss=None,
                log_start=log_size(self.directory),
                pending=None,
                queued=None,
            )
            if started:
                self._delete_after(started.first_step)
                self._insert(started)

    @waits_for_disk
    def write_event(self, event: Event) -> None:
        """Add an event."""
        with self._writing():
            self._insert(event)

    @waits_for_disk
    def write_chunk(self, first_step: int, started: float, ended: float, series: "Mapping[str, npt.ArrayLike]") -> None:
        """Add a chunk of steps.

        Args:
            first_step: Steps taken in the run before it; steps recorded from there on are deleted.
            started: Seconds since the Unix epoch.
            ended: Seconds since the Unix epoch.
            series: Values of each step by series name; all of one length.

        Raises:
            RunError: A step or a time is none that a run can have; see :mod:`accel_engine.run.whole_rows`.
        """
        import numpy as np  # see above

        from accel_engine.run import downsampled_steps

        packed = {name: np.asarray(values, dtype="<f4").tobytes() for name, values in series.items()}
        count = len(next(iter(packed.values()))) // 4
        self._check_times(started, ended)
        if not (0 < count <= MAX_CHUNK and 0 <= first_step <= MAX_STEP - count):
            raise RunError(
                f"cannot write {count:,} steps from {first_step:,}: a chunk has 1 to {MAX_CHUNK:,} steps, and a run at "
                f"most {MAX_STEP:,}"
            )
        with self._writing():
            for name in packed:
                if name not in self._series:
                    self._database.add_series(name)
                    self._series = (*self._series, name)
            last = first_step + count
            if first_step >= self._step and last // SPANS[0] == self._step // SPANS[0]:
                self._database.add_chunk(first_step, count, started, ended, packed)
            else:
                with self._database.transaction():
                    self._delete_steps(first_step)
                    self._database.add_chunk(first_step, count, started, ended, packed)
                    downsampled_steps.extend(self._database, last)
            self._step = last

    def write_samples(self, samples: Sequence[Sample]) -> None:
        """Add device samples; those that cannot be written are held in memory, and written with later ones."""
        self._held_samples.add(samples)
        if self._problem:
            return
        with self._writing():
            self._insert_samples()

    def _insert_samples(self) -> None:
        """Add the samples that are held; they are held no longer unless the database fails."""
        if not self._held_samples:
            return
        try:
            packer, self._packer = self._packer, SamplePacker()  # a new one in case the insert fails
            rows = [(sample.time, sample.device, packer.pack(sample)) for sample in self._held_samples]
            with self._database.transaction():
                self._database.add_samples(rows)
            self._packer = packer
        except sqlite3.OperationalError:
            raise
        except BaseException:
            self._held_samples.clear()  # these can never be written
            raise
        self._held_samples.clear()

    @waits_for_disk
    def write_diagnostics(self, item: "DiagnosticsItem", step: int) -> None:
        """Write diagnostics as of ``step``, replacing those of the same kind."""
        from accel_engine.run import diagnostics  # see above

        name, (head, body) = diagnostics.row_name(item), diagnostics.serialize(item)
        with self._writing():
            if self._writer_lock is None:
                self._database.upgrade()  # an ended run of an older program has no such table
            self._database.set_inside(name, clock.now(), step, head, body)

    def write_media(self, step: int, time: float, name: str, item: "MediaItem") -> None:
        """Write an image, a text or a histogram, replacing the one of the same kind, name and step.

        Args:
            step: Steps taken when it was logged; items of later steps are deleted when the run continues from an
                earlier one.
            time: Seconds since the Unix epoch.
            name: At most :data:`accel_engine.run.media.MAX_NAME` bytes in UTF-8.
            item: What to write.

        Raises:
            RunError: It, its name, or all items of the run would be larger than a run stores.
        """
        from accel_engine.run import media  # see above

        with explained(f"cannot log {name!r} at step {step}", (ValueError,)):
            media.check_position(step, name)
            kind, head, body = media.serialize(item)
            with self._writing():
                if self._media_bytes is None or self._media_bytes + len(body) > MAX_MEDIA_BYTES:
                    self._media_bytes = self._database.media_bytes()  # items may have been deleted or replaced
                if self._media_bytes + len(body) > MAX_MEDIA_BYTES:
                    raise ValueError(
                        f"the run's images, texts and histograms would take more than {MAX_MEDIA_BYTES >> 20} MiB: "
                        "log smaller ones, or at fewer steps"
                    )
                self._database.set_media(kind, name, int(step), time, head, body)
                self._media_bytes += len(body)

    @waits_for_disk
    def rewind(self, step: int) -> None:
        """Continue from an earlier step than the run's start says: delete what came later, and start again."""
        with self._writing(), self._database.transaction():
            self._delete_after(step)
            if started := last_event(self._database, RunStarted):
                self._insert(replace(started, time=clock.now(), first_step=step))

    def read_steps(self, first: int, last: int) -> "tuple[dict[str, npt.NDArray[np.float32]], float]":
        """Read the series of the chunks within the steps from ``first`` up to ``last``, and their total seconds."""
        import numpy as np  # see above

        with self._writing():
            rows = self._database.chunks_between(first, last, self._series)
        rows = [row for row in rows if first <= row[0] and row[0] + row[1] <= last]
        missing = np.float32(np.nan).tobytes()
        packed = {
            name: b"".join(row[index] or row[1] * missing for row in rows)
            for index, name in enumerate(self._series, 4)
            if any(row[index] for row in rows)
        }
        series = {name: np.frombuffer(values, dtype="<f4") for name, values in packed.items()}
        return series, sum(ended - started for _, _, started, ended, *_ in rows)

    def heartbeat(self) -> None:
        """Write the engine's heartbeat, a monotonic time; see :mod:`accel_engine.run.ownership`.

        Raises:
            RunError: Another process has taken over the run, e.g. after its lock file was deleted, or it is deleted and
                cannot be saved. Nothing more can be written.
        """
        self.follow_directory()  # first: SQLite does not write a deleted file that has no WAL
        with self._writing():
            if not self._database.beat(self._process, clock.boot_seconds(), time.time()):
                self._close()
                raise RunError(f"another process has taken over run {self.directory.name}")
            if (kills := count_kills()) != self._kills:  # of other processes, as this one lives
                self._database.set_meta(kills=kills.to_json())
                self._kills = kills

    def follow_directory(self) -> None:
        """Follow the run to its directory if that was moved; save it in another if it was deleted or replaced.

        Raises:
            RunError: It cannot be saved.
        """
        with self._writing():
            if self._writer_lock is None:
                return
            if not (lost_directory.is_current(self._database) or lost_directory.has_same_heartbeat(self._database)):
                with self._changing_files():
                    self._change_directory(self._writer_lock)
            elif self._overwrite_check.is_overwritten(self._database):
                with self._changing_files():
                    self._change_directory(self._writer_lock, overwritten=True)
            elif not self._writer_lock.is_current:
                with (
                    self._changing_files(),
                    suppress(BlockingIOError, RunError),
                ):  # the heartbeat notices another writer
                    self._writer_lock, former = WriterLock(self.directory), self._writer_lock
                    former.release()
            else:
                return
            self.show_problem(self._problem)  # the new lock has no flag yet

    @contextmanager
    def _changing_files(self) -> Iterator[None]:
        """Wraps whatever replaces the files that this process has open."""
        yield

    def _change_directory(self, lock: WriterLock, *, overwritten: bool = False) -> None:
        try:
            self.directory_loss, database = lost_directory.find_another_directory(
                self._database, lock.path, overwritten=overwritten
            )
        except RunError:
            self._close()
            raise
        if database is not self._database:
            self._close()
            database.set_lock_timeout(LOCK_TIMEOUT_SECONDS)
            self._database, lock = database, WriterLock(database.directory)
            self._overwrite_check = OverwriteCheck(self._process)
            if overwritten:  # a repaired run has no process, and steps may be missing
                self._series = database.series()
                self._step = database.chunk_from_end()[1]
                self._claim(None)
        self.directory = lock.directory = database.directory
        self.disk.move(database.directory)
        self._writer_lock = lock

    def commands(self) -> list[Command]:
        """Read the commands without an answer, oldest first."""
        with self._writing():
            return [Command(*row) for row in self._database.unanswered()]

    def is_withdrawn(self, command: Command) -> bool:
        """Whether the sender of a command that was read has withdrawn it since, as far as can be read."""
        try:
            with self._writing():
                return self._database.answer_to(command.id) is not None
        except RunError:
            return False

    @waits_for_disk
    def answer(self, command: Command, *, obeyed: bool, answer: str) -> None:
        """Answer a command."""
        with self._writing():
            self._database.answer(command.id, clock.now(), answer, obeyed=obeyed)

    def end(self, ended: Event) -> None:
        """Write the samples that are held and the last event, and close the run, so that no other thread adds to it."""

        def write() -> None:
            with self._writing():
                with suppress(sqlite3.OperationalError):
                    self._insert_samples()
                with self._database.transaction():
                    if missing := self._held_samples.dropped + len(self._held_samples):
                        message = f"{missing:,} device samples that could not be written are missing"
                        self._insert(Warned(time=clock.now(), message=message))
                    self._insert(ended)
                self._close()

        self._repeat(write, lambda *_: None)  # nothing can be said of the wait after the last event

    @waits_for_disk
    def leave_to_new_process(self, plan: "Plan") -> None:
        """Let the run wait for the process that will replace this one, with its id; and close it."""
        with self._writing():
            pending = {"pending": clock.boot_seconds(), "kills": None, "memory_loss": None, "log_start": None}
            self._database.set_meta(plan=plan.to_json(), **pending)
            self._close()

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

        It is called again, too, if it failed and the run has another directory now.

        Args:
            write: Writes; a call after one that failed must do all of it.
        """
        return self._repeat(write, self._report_wait)

    def _repeat(self, write: Callable[[], Result], on_success: Callable[[DiskProblem, float], object]) -> Result:
        directory = self.directory
        try:
            return self.disk.repeat(write, on_success) if self._waits else write()
        except Exception:
            self.follow_directory()
            if self.directory == directory:
                raise
        return self._repeat(write, on_success)

    def _report_wait(self, problem: DiskProblem, seconds: float) -> None:
        dropped = self._held_samples.take_dropped()
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
        with self._lock, explained(f"cannot write the run {self.directory.name}", (sqlite3.Error,)):
            step = self._step
            try:
                yield
            except sqlite3.Error as error:
                self._step = step  # what was deleted is there again
                if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY:
                    self._reopen()
                raise

    def _reopen(self) -> None:
        """Open the database again: SQLite opens it read-only, for good, if the disk fails as it is opened."""
        with self._changing_files(), suppress(RunError):
            database = connect(self.directory)
            if database.file != self._database.file:  # another run's: the next heartbeat saves this one
                database.close()
                return
            self._database.close()
            self._database = database
            self._database.set_lock_timeout(LOCK_TIMEOUT_SECONDS)

    @staticmethod
    def _check_times(*times: float) -> None:
        for time_ in times:
            if not 0 <= time_ <= MAX_TIME:
                raise RunError(f"a run has times from 0 to {MAX_TIME:,} seconds since the Unix epoch, not {time_:,}")

    def _insert(self, event: Event) -> None:
        self._check_times(event.time)
        self._database.add_event(event.time, event.kind(), to_stored(event))

    def _delete_after(self, step: int) -> None:
        """Delete the steps, diagnostics and media after those that training continues from."""
        self._delete_steps(step)
        self._database.delete_inside(step)
        self._database.delete_media(step)

    def _delete_steps(self, step: int) -> None:
        if step < self._step:
            self._database.delete_steps(step, self._series)
            self._step = self._database.chunk_from_end()[1]
