"""Writing everything that a run's engine says."""

import os
import socket
import sqlite3
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from accel_engine.devices.reading import Sample
from accel_engine.events import Event, RunStarted, to_json
from accel_engine.run.commands import Command
from accel_engine.run.making import process_start, put, refuse_taken
from accel_engine.run.samples import SamplePacker
from accel_engine.run.schema import INSIDE, SPANS, SUMMARY, connect, is_series, series_columns, transaction

if TYPE_CHECKING:  # NumPy takes long to import, and to make a run takes none
    import numpy as np
    import numpy.typing as npt

    from accel_engine.run.inside import Seen

PATIENCE_SECONDS = 60.0
"""How long an engine waits while somebody else holds the file locked, before its run fails."""


class RunWriter:
    """What an engine writes with; any of its threads may use it.

    Args:
        directory: The run's.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._connection = connect(directory)
        self._connection.execute(f"PRAGMA busy_timeout = {int(1000 * PATIENCE_SECONDS)}")
        self._lock = threading.Lock()
        self._packer = SamplePacker()
        self._series = series_columns(self._connection)
        self._step = _step(self._connection)

    def begin(self, pid: int, started: RunStarted | None = None) -> None:
        """Take the run up: it is this process's from now on.

        Args:
            pid: The engine's process id.
            started: Said in the same breath, so that nobody meets a run that is taken up and looks
                ended still; the steps after its first are forgotten.

        Raises:
            RunError: Another process has it.
        """
        with self._lock, transaction(self._connection):
            refuse_taken(self._connection, self.directory, pid, os.getpid())
            for statement in (*SUMMARY, INSIDE):
                self._connection.execute(statement)
            pending = self._connection.execute("SELECT value FROM meta WHERE key = 'pending'").fetchone()
            put(
                self._connection,
                pid=pid,
                pid_started=process_start(pid),
                host=socket.gethostname(),
                heartbeat=time.time(),
                pending=None,
            )
            # What was asked of an engine that died is not for this one; what was asked since the hand-over is.
            self._connection.execute(
                "UPDATE command SET answered = ?, obeyed = 0, answer = 'the engine had ended' "
                "WHERE answered IS NULL AND time < ?",
                (time.time(), pending[0] if pending else time.time()),
            )
            if started:
                self._forget(started.first_step)
                self._connection.execute("DELETE FROM inside WHERE step > ?", (started.first_step,))
                self._insert(started)

    def event(self, event: Event) -> None:
        """Add an event."""
        with self._lock:
            self._insert(event)

    def chunk(self, first_step: int, started: float, ended: float, series: "Mapping[str, npt.ArrayLike]") -> None:
        """Add a chunk of steps.

        Args:
            first_step: Steps taken in the run before it; those recorded from there on are forgotten.
            started: Seconds since the Unix epoch.
            ended: Likewise.
            series: What was measured at each of its steps, by name; all of one length.
        """
        import numpy as np  # see above

        from accel_engine.run import summary

        packed = {name: np.asarray(values, dtype="<f4") for name, values in series.items()}
        count = len(next(iter(packed.values())))
        columns = ", ".join(f'"{name}"' for name in packed)
        marks = ", ".join("?" * (4 + len(packed)))
        with self._lock:
            for name in packed:
                if name not in self._series:
                    self._add_series(name)
            row = (first_step, count, started, ended, *(values.tobytes() for values in packed.values()))
            insert = f"INSERT INTO chunk (first_step, count, started, ended, {columns}) VALUES ({marks})"
            last = first_step + count
            if first_step >= self._step and last // SPANS[0] == self._step // SPANS[0]:
                self._connection.execute(insert, row)
            else:
                with transaction(self._connection):
                    self._forget(first_step)
                    self._connection.execute(insert, row)
                    summary.extend(self._connection, last)
            self._step = last

    def samples(self, samples: Sequence[Sample]) -> None:
        """Add readings of devices."""
        with self._lock:
            packer, self._packer = self._packer, SamplePacker()  # a new one, if what follows fails
            rows = [(sample.time, sample.device, packer.pack(sample)) for sample in samples]
            with transaction(self._connection):
                self._connection.executemany("INSERT INTO sample (time, device, readings) VALUES (?, ?, ?)", rows)
            self._packer = packer

    def keep(self, seen: "Seen", step: int) -> None:
        """Keep what the run looks like inside after so many steps, in place of what was kept of the kind before."""
        from accel_engine.run import inside  # see above

        row = (inside.name_of(seen), time.time(), step, *inside.pack(seen))
        with self._lock:
            self._connection.execute(INSIDE)
            self._connection.execute("INSERT OR REPLACE INTO inside VALUES (?, ?, ?, ?, ?)", row)

    def truncate(self, step: int) -> None:
        """Forget the steps from ``step`` on, because training goes on from a checkpoint before them."""
        with self._lock, transaction(self._connection):
            self._forget(step)

    def recorded(self, first: int, last: int) -> "tuple[dict[str, npt.NDArray[np.float32]], float]":
        """Read back the series of the steps from ``first`` up to ``last``, where chunks end, and their seconds."""
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
        """Say that the engine lives."""
        with self._lock:
            put(self._connection, heartbeat=time.time())

    def commands(self) -> list[Command]:
        """The commands that wait for an answer, oldest first."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT id, time, who, name, argument FROM command WHERE answered IS NULL ORDER BY id"
            ).fetchall()
        return [Command(*row) for row in rows]

    def answer(self, command: Command, *, obeyed: bool, answer: str) -> None:
        """Mark a command as answered."""
        with self._lock:
            self._connection.execute(
                "UPDATE command SET answered = ?, obeyed = ?, answer = ? WHERE id = ?",
                (time.time(), obeyed, answer, command.id),
            )

    def end(self, ended: Event) -> None:
        """Say the last word and let go of the file, so that no other thread can add to it."""
        with self._lock:
            self._insert(ended)
            self._connection.close()

    def close(self) -> None:
        """Let go of the file; what was written stays."""
        with self._lock:
            self._connection.close()

    def _insert(self, event: Event) -> None:
        self._connection.execute(
            "INSERT INTO event (time, kind, body) VALUES (?, ?, ?)", (event.time, event.kind(), to_json(event))
        )

    def _forget(self, step: int) -> None:
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
            raise ValueError(f"{name!r} cannot name a series")
        self._connection.execute(f'ALTER TABLE chunk ADD COLUMN "{name}" BLOB')
        self._series = (*self._series, name)


def _step(connection: sqlite3.Connection) -> int:
    """How many steps the run has taken."""
    row = connection.execute("SELECT first_step + count FROM chunk ORDER BY first_step DESC LIMIT 1").fetchone()
    return int(row[0]) if row else 0
