"""Reads what was written to a run since the last poll."""

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accel_engine.errors import RunError
from accel_engine.events import KINDS, Event, from_stored_rows
from accel_engine.run.sample_packing import SampleUnpacker
from accel_engine.run.schema import FIXED_CHUNK_COLUMNS, connect
from accel_engine.run.status import RunInfo, read_info
from accel_engine.run.update import Update, chunk_of

if TYPE_CHECKING:  # NumPy is slow to import, and listing runs or sending a command does not need it
    from accel_engine.run.downsampled_steps import StepRange

RECENT_CHUNKS = 64
"""How many of the latest chunks are read one by one even if most of a run is read in buckets."""

_FEW_STEPS = 1 << 16  # fewer new steps than this are read from their chunks

_EVENTS = "SELECT id, kind, time, body FROM event WHERE id > ? {} ORDER BY id LIMIT ?"
_NO_PAST_PHASES = """
AND (kind != 'phase_changed' OR id = (SELECT id FROM event WHERE kind = 'phase_changed' ORDER BY id DESC LIMIT 1))
"""


@dataclass(slots=True)
class _Position:
    """A reader's position: the last row read of each table, and the step after the last one read."""

    event: int = 0
    chunk: int = 0
    step: int = 0
    sample: int = 0
    data_version: int = field(default=-1)


class RunReader:
    """Follows one run, live or ended.

    Args:
        directory: The run's directory.
        max_samples: Maximum samples per poll, the latest ones; all by default. A long run has far more than
            a screen can show.
        max_buckets: Read many new steps in at most this many buckets, except those of the latest chunks;
            all chunks by default.
        steps: Whether to read steps.
        max_events: Maximum events per poll, the oldest ones; all by default. A poll that leaves some for the next
            reads nothing else, to keep the order.
        past_phases: Whether to read phases that another phase has followed.

    Raises:
        RunError: There is no run, or this program cannot read it.
    """

    def __init__(
        self,
        directory: Path,
        *,
        max_samples: int | None = None,
        max_buckets: int | None = None,
        steps: bool = True,
        max_events: int | None = None,
        past_phases: bool = True,
    ) -> None:
        self.directory = directory
        self._max_samples = -1 if max_samples is None else max_samples
        self._max_buckets = max_buckets
        self._steps = steps
        self._max_events = -1 if max_events is None else max_events
        self._events = _EVENTS.format("" if past_phases else _NO_PAST_PHASES)
        self._connection = connect(directory, read_only=True)
        self._position = _Position()
        self._unpacker = SampleUnpacker()

    def info(self) -> RunInfo:
        """Read the run's ``meta`` and status."""
        try:
            return read_info(self._connection, self.directory)
        except (sqlite3.Error, KeyError, ValueError) as error:
            raise RunError(f"run {self.directory.name} cannot be read: {error}") from error

    def poll(self) -> Update:
        """Read what was written since the last call; the first call reads everything.

        Takes a few microseconds if nothing was written.

        Raises:
            RunError: The file can no longer be read.
        """
        try:
            version = self._connection.execute("PRAGMA data_version").fetchone()[0]
            if version == self._position.data_version:
                return Update()
            update = self._read()
        except sqlite3.Error as error:
            raise RunError(f"run {self.directory.name} cannot be read: {error}") from error
        if not update.more:
            self._position.data_version = version  # only now, so that a failed read is repeated
        return update

    def skip(self) -> None:
        """Skip everything written so far.

        Raises:
            RunError: The file can no longer be read.
        """
        position = self._position
        try:
            with _snapshot(self._connection):
                position.event, position.chunk, position.sample, position.step = self._connection.execute(
                    "SELECT (SELECT coalesce(max(id), 0) FROM event), (SELECT coalesce(max(id), 0) FROM chunk), "
                    "(SELECT coalesce(max(id), 0) FROM sample), "
                    "(SELECT coalesce(max(first_step + count), 0) FROM chunk WHERE id = (SELECT max(id) FROM chunk))"
                ).fetchone()
        except sqlite3.Error as error:
            raise RunError(f"run {self.directory.name} cannot be read: {error}") from error

    def step_range(self, first: int, last: int, width: int, wanted: Collection[str] | None = None) -> "StepRange":
        """Read the steps from ``first`` up to but not including ``last`` in buckets, in milliseconds for any run.

        Args:
            first: The first step; the range may begin some steps before.
            last: The step after the last, limited to the recorded steps.
            width: Steps per bucket, a power of two.
            wanted: The series to read, besides THROUGHPUT and TIME; all by default.

        Raises:
            RunError: The file can no longer be read.
        """
        try:
            with _snapshot(self._connection):
                return self._step_range(first, last, width, wanted)
        except sqlite3.Error as error:
            raise RunError(f"run {self.directory.name} cannot be read: {error}") from error

    def samples(self, after: int, limit: int) -> list[tuple[int, float, str, str]]:
        """Read packed samples, for a :class:`~accel_engine.run.sample_packing.SampleUnpacker`.

        Args:
            after: Id of the last sample read before; 0 to start with the first.
            limit: Maximum number of samples.

        Returns:
            Id, time in seconds since the Unix epoch, device and packed text of each.

        Raises:
            RunError: The file can no longer be read.
        """
        try:
            return self._connection.execute(
                "SELECT id, time, device, readings FROM sample WHERE id > ? ORDER BY id LIMIT ?", (after, limit)
            ).fetchall()
        except sqlite3.Error as error:
            raise RunError(f"run {self.directory.name} cannot be read: {error}") from error

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def _read(self) -> Update:
        position = self._position
        with _snapshot(self._connection):
            events = self._connection.execute(self._events, (position.event, self._max_events)).fetchall()
            if len(events) == self._max_events:
                position.event = events[-1][0]
                return Update(_events_of(events), more=True)
            step_range = None
            names, chunks = self._chunks(position.chunk, RECENT_CHUNKS + 1)
            if len(chunks) > RECENT_CHUNKS:
                skipped, step_range = self._many_chunks()
                names, chunks = self._chunks(max(position.chunk, skipped), -1)
            samples = self._connection.execute(
                "SELECT id, time, device, readings FROM sample WHERE id > ? ORDER BY id DESC LIMIT ?",
                (position.sample, self._max_samples),
            ).fetchall()
        position.event = events[-1][0] if events else position.event
        if chunks:
            position.chunk, position.step = chunks[-1][0], chunks[-1][1] + chunks[-1][2]
        position.sample = samples[0][0] if samples else position.sample
        return Update(
            _events_of(events),
            tuple(chunk_of(row, names) for row in chunks),
            tuple(self._unpacker.unpack(at, device, body) for _, at, device, body in reversed(samples)),
            step_range,
        )

    def _chunks(self, after: int, limit: int) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """The names of all series, and the rows of up to ``limit`` chunks; none if steps are not read."""
        cursor = self._connection.execute(
            "SELECT * FROM chunk WHERE id > ? ORDER BY id LIMIT ?", (after, limit if self._steps else 0)
        )
        return tuple(column[0] for column in cursor.description[len(FIXED_CHUNK_COLUMNS) :]), cursor.fetchall()

    def _many_chunks(self) -> "tuple[int, StepRange | None]":
        """If there are many new steps: the last chunk before the recent ones, and all steps up to it in buckets."""
        if self._max_buckets is None:
            return 0, None
        row = self._connection.execute(
            "SELECT id, first_step + count FROM chunk ORDER BY id DESC LIMIT 1 OFFSET ?", (RECENT_CHUNKS,)
        ).fetchone()
        if row is None or row[0] <= self._position.chunk or row[1] - self._position.step < _FEW_STEPS:
            return 0, None
        width = _FEW_STEPS >> 10
        while row[1] > width * self._max_buckets:
            width *= 2
        return row[0], self._step_range(0, row[1], width)

    def _step_range(self, first: int, last: int, width: int, wanted: Collection[str] | None = None) -> "StepRange":
        from accel_engine.run import downsampled_steps  # see above

        return downsampled_steps.read(self._connection, first, last, width, wanted)


def _events_of(rows: list[tuple[int, str, float, str]]) -> tuple[Event, ...]:
    return tuple(from_stored_rows([row[1:] for row in rows if row[1] in KINDS]))


@contextmanager
def _snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """Read the tables in one transaction."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("COMMIT")
