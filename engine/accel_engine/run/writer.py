"""Writes a run's events, steps, samples and diagnostics."""

import os
import socket
import sqlite3
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from accel_engine import clock
from accel_engine.devices.device_types import Sample
from accel_engine.errors import RunError
from accel_engine.events import Event, RunStarted, to_stored
from accel_engine.run.commands import Command
from accel_engine.run.creation import reject_commands, set_meta
from accel_engine.run.lock import WriterLock
from accel_engine.run.ownership import already_training_error
from accel_engine.run.process_identity import ProcessIdentity, machine_id
from accel_engine.run.sample_packing import SamplePacker
from accel_engine.run.schema import (
    INSIDE,
    SCHEMA_VERSION,
    SPANS,
    SUMMARY,
    connect,
    is_series,
    series_columns,
    transaction,
)
from accel_engine.run.status import Status, read_info

if TYPE_CHECKING:  # NumPy is slow to import, and creating a run does not need it
    import numpy as np
    import numpy.typing as npt

    from accel_engine.run.diagnostics import DiagnosticsItem

LOCK_TIMEOUT_SECONDS = 60.0
"""How long an engine waits for another process to release the database or the run's lock."""


class RunWriter:
    """Writes one run. Thread-safe.

    Args:
        directory: The run's directory.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._connection = connect(directory)
        self._connection.execute(f"PRAGMA busy_timeout = {int(1000 * LOCK_TIMEOUT_SECONDS)}")
        self._lock = threading.Lock()
        self._writer_lock: WriterLock | None = None
        self._process = ProcessIdentity.of(os.getpid()).to_json()
        self._packer = SamplePacker()
        self._series = series_columns(self._connection)
        self._step = _step(self._connection)

    def begin(self, started: RunStarted | None = None) -> None:
        """Lock the run: only this process writes it from now on.

        Args:
            started: Written in the same transaction, so that the run does not look ended to a reader;
                steps from its first step on are deleted.

        Raises:
            RunError: Another process writes the run, or it cannot be locked.
        """
        with self._lock:
            if self._writer_lock:
                self._claim(started)
                return
            self._writer_lock = self._acquire()
            try:
                self._claim(started)
            except BaseException:
                self._release()
                raise

    def _acquire(self) -> WriterLock:
        """Acquire the lock, waiting for the previous engine if it has ended the run but not exited yet."""
        deadline = time.monotonic() + LOCK_TIMEOUT_SECONDS
        while True:
            try:
                return WriterLock(self.directory)
            except BlockingIOError:
                info = read_info(self._connection, self.directory)
                if info.status is not Status.STARTING or time.monotonic() > deadline:
                    raise already_training_error(info) from None
            time.sleep(0.01)

    def _claim(self, started: RunStarted | None) -> None:
        with transaction(self._connection):
            info = read_info(self._connection, self.directory)
            is_pending = info.status is Status.STARTING
            if is_pending and info.pid not in (None, os.getpid()):
                raise already_training_error(info)  # it is assigned to another process, which has not started yet
            if not is_pending:  # else reopening has done it, and commands sent since are for this engine
                reject_commands(self._connection)
            for statement in (*SUMMARY, INSIDE):
                self._connection.execute(statement)
            set_meta(
                self._connection,
                schema=SCHEMA_VERSION,
                pid=os.getpid(),
                process=self._process,
                pid_started=None,  # of version 1
                machine=machine_id(),
                host=socket.gethostname(),
                clock_offset=clock.OFFSET,
                heartbeat=clock.boot_seconds(),
                written=time.time(),
                pending=None,
            )
            if started:
                self._delete_steps(started.first_step)
                self._connection.execute("DELETE FROM inside WHERE step > ?", (started.first_step,))
                self._insert(started)

    def write_event(self, event: Event) -> None:
        """Add an event."""
        with self._lock:
            self._insert(event)

    def write_chunk(self, first_step: int, started: float, ended: float, series: "Mapping[str, npt.ArrayLike]") -> None:
        """Add a chunk of steps.

        Args:
            first_step: Steps taken in the run before it; steps recorded from there on are deleted.
            started: Seconds since the Unix epoch.
            ended: Seconds since the Unix epoch.
            series: Values of each step by series name; all of one length.
        """
        import numpy as np  # see above

        from accel_engine.run import downsampled_steps

        packed = {name: np.asarray(values, dtype="<f4") for name, values in series.items()}
        count = len(next(iter(packed.values())))
        columns = ", ".join(f'"{name}"' for name in packed)
        placeholders = ", ".join("?" * (4 + len(packed)))
        with self._lock:
            for name in packed:
                if name not in self._series:
                    self._add_series(name)
            row = (first_step, count, started, ended, *(values.tobytes() for values in packed.values()))
            insert = f"INSERT INTO chunk (first_step, count, started, ended, {columns}) VALUES ({placeholders})"
            last = first_step + count
            if first_step >= self._step and last // SPANS[0] == self._step // SPANS[0]:
                self._connection.execute(insert, row)
            else:
                with transaction(self._connection):
                    self._delete_steps(first_step)
                    self._connection.execute(insert, row)
                    downsampled_steps.extend(self._connection, last)
            self._step = last

    def write_samples(self, samples: Sequence[Sample]) -> None:
        """Add device samples."""
        with self._lock:
            packer, self._packer = self._packer, SamplePacker()  # a new one in case the insert fails
            rows = [(sample.time, sample.device, packer.pack(sample)) for sample in samples]
            with transaction(self._connection):
                self._connection.executemany("INSERT INTO sample (time, device, readings) VALUES (?, ?, ?)", rows)
            self._packer = packer

    def write_diagnostics(self, item: "DiagnosticsItem", step: int) -> None:
        """Write diagnostics as of ``step``, replacing those of the same kind."""
        from accel_engine.run import diagnostics  # see above

        row = (diagnostics.row_name(item), clock.now(), step, *diagnostics.serialize(item))
        with self._lock:
            self._connection.execute(INSIDE)
            self._connection.execute("INSERT OR REPLACE INTO inside VALUES (?, ?, ?, ?, ?)", row)

    def truncate(self, step: int) -> None:
        """Delete the steps from ``step`` on, as training continues from an earlier checkpoint."""
        with self._lock, transaction(self._connection):
            self._delete_steps(step)

    def read_steps(self, first: int, last: int) -> "tuple[dict[str, npt.NDArray[np.float32]], float]":
        """Read the series of the steps from ``first`` up to ``last``, both ends of chunks, and their total seconds."""
        import numpy as np  # see above

        with self._lock:
            columns = "".join(f', "{name}"' for name in self._series)
            rows = self._connection.execute(
                f"SELECT ended - started{columns} FROM chunk WHERE first_step >= ? AND first_step + count <= ?",
                (first, last),
            ).fetchall()
        packed = {name: b"".join(row[index] or b"" for row in rows) for index, name in enumerate(self._series, 1)}
        series = {name: np.frombuffer(values, dtype="<f4") for name, values in packed.items() if values}
        return series, sum(row[0] for row in rows)

    def heartbeat(self) -> None:
        """Write the engine's heartbeat, a monotonic time; see :mod:`accel_engine.run.ownership`.

        Raises:
            RunError: Another process has taken over the run, e.g. after its lock file was deleted. Nothing more can
                be written.
        """
        with self._lock:
            written = self._connection.execute(
                "UPDATE meta SET value = CASE key WHEN 'heartbeat' THEN ? ELSE ? END "
                "WHERE key IN ('heartbeat', 'written') AND EXISTS "
                "(SELECT 1 FROM meta WHERE key = 'process' AND value = ?)",
                (clock.boot_seconds(), time.time(), self._process),
            )
            if not written.rowcount:
                self._close()
                raise RunError(f"another process has taken over run {self.directory.name}")

    def commands(self) -> list[Command]:
        """Read the commands without an answer, oldest first."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT id, time, who, name, argument FROM command WHERE answered IS NULL ORDER BY id"
            ).fetchall()
        return [Command(*row) for row in rows]

    def answer(self, command: Command, *, obeyed: bool, answer: str) -> None:
        """Answer a command."""
        with self._lock:
            self._connection.execute(
                "UPDATE command SET answered = ?, obeyed = ?, answer = ? WHERE id = ?",
                (clock.now(), obeyed, answer, command.id),
            )

    def end(self, ended: Event) -> None:
        """Write the last event and close the run, so that no other thread can add to it."""
        with self._lock:
            self._insert(ended)
            self._close()

    def close(self) -> None:
        """Close the database and release the lock."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        self._connection.close()
        self._release()

    def _release(self) -> None:
        if self._writer_lock:
            self._writer_lock.release()
            self._writer_lock = None

    def _insert(self, event: Event) -> None:
        self._connection.execute(
            "INSERT INTO event (time, kind, body) VALUES (?, ?, ?)", (event.time, event.kind(), to_stored(event))
        )

    def _delete_steps(self, step: int) -> None:
        if step >= self._step:
            return
        self._connection.execute("DELETE FROM chunk WHERE first_step >= ?", (step,))
        self._step = _step(self._connection)
        if self._step > step:
            cuts = "".join(f', "{name}" = substr("{name}", 1, 4 * (:step - first_step))' for name in self._series)
            self._connection.execute(
                "UPDATE chunk SET count = :step - first_step, "
                f"ended = started + (ended - started) * (:step - first_step) / count{cuts} "
                "WHERE first_step + count = :last AND first_step < :step",
                {"step": step, "last": self._step},
            )
            self._step = step

    def _add_series(self, name: str) -> None:
        if not is_series(name):
            raise ValueError(f"{name!r} is not a valid series name")
        self._connection.execute(f'ALTER TABLE chunk ADD COLUMN "{name}" BLOB')
        self._series = (*self._series, name)


def _step(connection: sqlite3.Connection) -> int:
    """The number of steps taken in the run."""
    row = connection.execute("SELECT first_step + count FROM chunk ORDER BY first_step DESC LIMIT 1").fetchone()
    return int(row[0]) if row else 0
