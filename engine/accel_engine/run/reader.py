"""Reading a run as it grows."""

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accel_engine.errors import RunError
from accel_engine.events import KINDS, Event, from_rows
from accel_engine.run.sample_packing import SampleUnpacker
from accel_engine.run.schema import FIXED_CHUNK_COLUMNS, connect
from accel_engine.run.status import RunInfo, read_info
from accel_engine.run.update import Update, chunk_of

if TYPE_CHECKING:  # NumPy takes long to import, and to list runs or to ask something of one takes none
    from accel_engine.run.downsampled_steps import StepRange

RECENT_CHUNKS = 64
"""How many of the latest chunks are read one by one even where most of a run is read in buckets."""

_FEW_STEPS = 1 << 16  # so many are read from their chunks

_EVENTS = "SELECT id, kind, time, body FROM event WHERE id > ? {} ORDER BY id LIMIT ?"
_NO_PAST_PHASES = """
AND (kind != 'phase_changed' OR id = (SELECT id FROM event WHERE kind = 'phase_changed' ORDER BY id DESC LIMIT 1))
"""


@dataclass(slots=True)
class _Place:
    """How far a reader has read: the last row of each table, and the steps before which it knows."""

    event: int = 0
    chunk: int = 0
    step: int = 0
    sample: int = 0
    data_version: int = field(default=-1)


class RunReader:
    """Follows one run, live or ended.

    Args:
        directory: The run's.
        most_samples: How many samples a poll reads at most, the latest; all of them when left out. A
            long run has far more than a screen can show.
        most_buckets: Where there are many more steps than were read before, read them in at most so many
            buckets, but for those of the latest chunks; all chunks when left out.
        steps: Whether steps are read at all.
        most_events: How many events a poll reads at most, the oldest; all of them when left out. A poll that leaves
            some to the next reads nothing else, so that the order is the same.
        past_phases: Whether phases are read that another has followed.

    Raises:
        RunError: There is no run there, or this program cannot read it.
    """

    def __init__(
        self,
        directory: Path,
        *,
        most_samples: int | None = None,
        most_buckets: int | None = None,
        steps: bool = True,
        most_events: int | None = None,
        past_phases: bool = True,
    ) -> None:
        self.directory = directory
        self._most_samples = -1 if most_samples is None else most_samples
        self._most_buckets = most_buckets
        self._steps = steps
        self._most_events = -1 if most_events is None else most_events
        self._events = _EVENTS.format("" if past_phases else _NO_PAST_PHASES)
        self._connection = connect(directory, read_only=True)
        self._place = _Place()
        self._unpacker = SampleUnpacker()

    def info(self) -> RunInfo:
        """Read what the run is and how it stands now."""
        try:
            return read_info(self._connection, self.directory)
        except (sqlite3.Error, KeyError, ValueError) as error:
            raise RunError(f"run {self.directory.name} cannot be read: {error}") from error

    def poll(self) -> Update:
        """Read what has been written since the last call; all of it at the first.

        Costs some microseconds when nothing was written.

        Raises:
            RunError: The file can no longer be read.
        """
        try:
            version = self._connection.execute("PRAGMA data_version").fetchone()[0]
            if version == self._place.data_version:
                return Update()
            update = self._read()
        except sqlite3.Error as error:
            raise RunError(f"run {self.directory.name} cannot be read: {error}") from error
        if not update.more:
            self._place.data_version = version  # only now: what could not be read is read again
        return update

    def skip(self) -> None:
        """Pass over all that was written so far.

        Raises:
            RunError: The file can no longer be read.
        """
        place = self._place
        try:
            with _snapshot(self._connection):
                place.event, place.chunk, place.sample, place.step = self._connection.execute(
                    "SELECT (SELECT coalesce(max(id), 0) FROM event), (SELECT coalesce(max(id), 0) FROM chunk), "
                    "(SELECT coalesce(max(id), 0) FROM sample), "
                    "(SELECT coalesce(max(first_step + count), 0) FROM chunk WHERE id = (SELECT max(id) FROM chunk))"
                ).fetchone()
        except sqlite3.Error as error:
            raise RunError(f"run {self.directory.name} cannot be read: {error}") from error

    def stretch(self, first: int, last: int, width: int, wanted: Collection[str] | None = None) -> "StepRange":
        """Read the steps from ``first`` to before ``last`` in buckets, within milliseconds however long the run.

        Args:
            first: The first step; the stretch may begin some steps before.
            last: The step after the last, if the run goes so far.
            width: Steps a bucket, a power of two.
            wanted: The series to read, beside those by time; all when left out.

        Raises:
            RunError: The file can no longer be read.
        """
        try:
            with _snapshot(self._connection):
                return self._stretch(first, last, width, wanted)
        except sqlite3.Error as error:
            raise RunError(f"run {self.directory.name} cannot be read: {error}") from error

    def samples(self, after: int, most: int) -> list[tuple[int, float, str, str]]:
        """Read samples as they are in the file, for a :class:`~accel_engine.run.sample_packing.SampleUnpacker`.

        Args:
            after: The number of the last one that is known; 0 to begin with the first.
            most: How many at most.

        Returns:
            Each with its number, its time in seconds since the Unix epoch, its device, and its text.

        Raises:
            RunError: The file can no longer be read.
        """
        try:
            return self._connection.execute(
                "SELECT id, time, device, readings FROM sample WHERE id > ? ORDER BY id LIMIT ?", (after, most)
            ).fetchall()
        except sqlite3.Error as error:
            raise RunError(f"run {self.directory.name} cannot be read: {error}") from error

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def _read(self) -> Update:
        place = self._place
        with _snapshot(self._connection):
            events = self._connection.execute(self._events, (place.event, self._most_events)).fetchall()
            if len(events) == self._most_events:
                place.event = events[-1][0]
                return Update(_events_of(events), more=True)
            stretch = None
            names, chunks = self._chunks(place.chunk, RECENT_CHUNKS + 1)
            if len(chunks) > RECENT_CHUNKS:
                skipped, stretch = self._many_chunks()
                names, chunks = self._chunks(max(place.chunk, skipped), -1)
            samples = self._connection.execute(
                "SELECT id, time, device, readings FROM sample WHERE id > ? ORDER BY id DESC LIMIT ?",
                (place.sample, self._most_samples),
            ).fetchall()
        place.event = events[-1][0] if events else place.event
        if chunks:
            place.chunk, place.step = chunks[-1][0], chunks[-1][1] + chunks[-1][2]
        place.sample = samples[0][0] if samples else place.sample
        return Update(
            _events_of(events),
            tuple(chunk_of(row, names) for row in chunks),
            tuple(self._unpacker.unpack(at, device, body) for _, at, device, body in reversed(samples)),
            stretch,
        )

    def _chunks(self, after: int, most: int) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """The names of all series, and the rows of at most so many chunks after one; none where no steps are read."""
        cursor = self._connection.execute(
            "SELECT * FROM chunk WHERE id > ? ORDER BY id LIMIT ?", (after, most if self._steps else 0)
        )
        return tuple(column[0] for column in cursor.description[len(FIXED_CHUNK_COLUMNS) :]), cursor.fetchall()

    def _many_chunks(self) -> "tuple[int, StepRange | None]":
        """Where there are many new steps: the last chunk that is not of the latest, and all up to it in buckets."""
        if self._most_buckets is None:
            return 0, None
        row = self._connection.execute(
            "SELECT id, first_step + count FROM chunk ORDER BY id DESC LIMIT 1 OFFSET ?", (RECENT_CHUNKS,)
        ).fetchone()
        if row is None or row[0] <= self._place.chunk or row[1] - self._place.step < _FEW_STEPS:
            return 0, None
        width = _FEW_STEPS >> 10
        while row[1] > width * self._most_buckets:
            width *= 2
        return row[0], self._stretch(0, row[1], width)

    def _stretch(self, first: int, last: int, width: int, wanted: Collection[str] | None = None) -> "StepRange":
        from accel_engine.run import downsampled_steps  # see above

        return downsampled_steps.read(self._connection, first, last, width, wanted)


def _events_of(rows: list[tuple[int, str, float, str]]) -> tuple[Event, ...]:
    return tuple(from_rows([row[1:] for row in rows if row[1] in KINDS]))


@contextmanager
def _snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """See the run as it is at one moment."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("COMMIT")
