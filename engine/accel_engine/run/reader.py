"""Reads a run: what was written since the last poll, any range of its steps, or everything in batches."""

import sqlite3
from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from accel_engine.devices.device_types import Sample
from accel_engine.events import KINDS, Event, RunStarted, from_stored, from_stored_rows
from accel_engine.run.connection import DAMAGE, connect, explained
from accel_engine.run.database import Row
from accel_engine.run.sample_packing import SampleUnpacker
from accel_engine.run.status import RunInfo, read_info
from accel_engine.run.update import NewSteps, Update, chunk_of

if TYPE_CHECKING:  # NumPy is slow to import, and listing runs or sending a command does not need it
    from accel_engine.run.downsampled_steps import StepRange
    from accel_engine.run.media import LoggedItem, MediaItem, MediaKind, MediaSeries
    from accel_engine.run.steps import StepBatch

RECENT_CHUNKS = 64
"""How many of the latest chunks are read one by one even if most of a run is read in buckets."""

_FEW_STEPS = 1 << 16  # fewer new steps than this are read from their chunks

_BATCH_SAMPLES = 1 << 12


@dataclass(slots=True)
class _Position:
    """What was polled: the last row read of each table, and the step after the last one read."""

    event: int = 0
    chunk: int = 0
    step: int = 0
    sample: int = 0
    data_version: int = -1


class RunReader:
    """Reads one run, live or ended.

    Args:
        directory: The run's directory.
        max_samples: Maximum samples per poll, the latest ones; all by default. A long run has far more than
            a screen can show.
        max_buckets: Read many new steps in at most this many buckets, except those of the latest chunks;
            all chunks by default.
        steps: Whether to read steps when polling.
        max_events: Maximum events per poll, the oldest ones; all by default. A poll that leaves some for the next
            reads nothing else, to keep the order.
        past_phases: Whether to read phases that another phase has followed when polling.

    Raises:
        RunError: There is no run, or this program cannot read it. All methods raise it, too.
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
        self._polls_steps = steps
        self._max_events = -1 if max_events is None else max_events
        self._past_phases = past_phases
        self._database = connect(directory, read_only=True)
        self._position = _Position()
        self._unpacker = SampleUnpacker()

    def info(self) -> RunInfo:
        """Read the run's ``meta`` and status."""
        with self._reading(*DAMAGE):
            return read_info(self._database)

    def poll(self) -> Update:
        """Read what was written since the last call; the first call reads everything.

        Takes a few microseconds if nothing was written.
        """
        with self._reading():
            version = self._database.data_version()
            if version == self._position.data_version:
                return Update()
            update = self._read()
        if not update.more:
            self._position.data_version = version  # only now, so that a failed read is repeated
        return update

    def skip(self) -> None:
        """Skip everything written so far."""
        position = self._position
        with self._reading(), self._database.snapshot():
            position.event, position.sample = self._database.last_id("event"), self._database.last_id("sample")
            position.chunk, position.step = self._database.chunk_from_end()

    def step_range(self, first: int, last: int, width: int, wanted: Collection[str] | None = None) -> "StepRange":
        """Read the steps from ``first`` up to but not including ``last`` in buckets, in milliseconds for any run.

        Args:
            first: The first step; the range may begin some steps before.
            last: The step after the last, limited to the recorded steps.
            width: Steps per bucket, a power of two.
            wanted: The series to read, besides THROUGHPUT and TIME; all by default.
        """
        with self._reading(), self._database.snapshot():
            return self._step_range(first, last, width, wanted)

    def series(self) -> tuple[str, ...]:
        """Names of the per-step series."""
        with self._reading():
            return self._database.series()

    def new_steps(self, chunk: int = 0) -> NewSteps | None:
        """Find the steps recorded after a chunk (default: all); ``None`` if there are none."""
        with self._reading(), self._database.snapshot():
            newest, stop = self._database.chunk_from_end()
            return NewSteps(self._database.first_step_after(chunk), stop, newest) if newest > chunk else None

    def steps(self, first: int, last: int) -> "Iterator[StepBatch]":
        """Read the recorded steps from ``first`` up to but not including ``last``, in batches."""
        from accel_engine.run.steps import read_batches  # see above

        with self._reading(*DAMAGE):
            yield from read_batches(self._database, first, last)

    def chunk_ends(self, chunk: int = 0) -> list[tuple[float, int]]:
        """End time of each chunk after ``chunk``, and the number of steps taken by then."""
        with self._reading():
            return self._database.chunk_ends(chunk)

    def events(self, after: int = 0, *kinds: type[Event]) -> Iterator[tuple[int, Event]]:
        """Read events with their ids, after the id ``after``; only those of ``kinds`` if any are given."""
        names = [kind.kind() for kind in kinds] or list(KINDS)
        with self._reading(*DAMAGE):
            for number, kind, time, body in self._database.events(after, kinds=names):
                yield number, from_stored(kind, time, body)

    def samples(self, after: int, limit: int) -> list[tuple[int, float, str, str]]:
        """Read packed samples, for a :class:`~accel_engine.run.sample_packing.SampleUnpacker`.

        Args:
            after: Id of the last sample read before; 0 to start with the first.
            limit: Maximum number of samples.

        Returns:
            Id, time in seconds since the Unix epoch, device and packed text of each.
        """
        with self._reading():
            return self._database.samples(after, limit)

    def sample_batches(self, unpacker: SampleUnpacker, after: int = 0) -> Iterator[tuple[int, list[Sample]]]:
        """Read samples in batches, each with the id of its last sample.

        Args:
            unpacker: Has unpacked all samples before; a new one at the beginning.
            after: Id of the last sample read before.
        """
        with self._reading(*DAMAGE):
            while rows := self._database.samples(after, _BATCH_SAMPLES):
                after = rows[-1][0]
                yield after, [unpacker.unpack(*row[1:]) for row in rows]

    def media_list(self) -> "list[MediaSeries]":
        """List the series of logged images, texts and histograms by name, without reading one; empty in older runs."""
        from accel_engine.run.media import KINDS, MediaSeries  # see above

        with self._reading(*DAMAGE):
            return sorted(
                (
                    MediaSeries(kind, str(name), *map(int, numbers))
                    for kind, name, *numbers in self._database.media_series()
                    if kind in KINDS
                ),
                key=lambda series: (series.name, series.kind),
            )

    def media_steps(self, series: "MediaSeries") -> list[int]:
        """The steps of a series of :meth:`media_list`, in order."""
        with self._reading(*DAMAGE):
            return list(map(int, self._database.media_steps(series.kind, series.name)))

    def media(self, series: "MediaSeries", step: int) -> "tuple[int, MediaItem] | None":
        """Read the newest item of a series up to a step, with its step; ``None`` if there is none."""
        with self._reading():
            row = self._database.media(series.kind, series.name, step)
        return None if row is None else (row[0], self._media_item(series.kind, series.name, *row))

    def media_items(self, after: int = 0) -> "Iterator[LoggedItem]":
        """Read images, texts and histograms after the id ``after``, in the order in which they were added."""
        from accel_engine.run.media import KINDS, LoggedItem  # see above

        with self._reading(*DAMAGE):
            rows = self._database.media_after(after) if self._database.has_table("media") else ()
            for number, time, step, name, kind, head, body in rows:
                if kind in KINDS:
                    item = self._media_item(kind, name, step, head, body)
                    yield LoggedItem(number, time, int(step), str(name), item)

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def _media_item(self, kind: "MediaKind", name: str, step: int, head: str, body: bytes) -> "MediaItem":
        from accel_engine.run.media import deserialize  # see above

        with explained(f"run {self.directory.name}: {kind} {name!r} of step {step} is damaged", DAMAGE):
            return deserialize(kind, head, body)

    def _reading(self, *errors: type[Exception]) -> AbstractContextManager[None]:
        return explained(f"run {self.directory.name} cannot be read", errors or (sqlite3.Error,))

    def _read(self) -> Update:
        database, position = self._database, self._position
        with database.snapshot():
            events = database.events(position.event, self._max_events, past_phases=self._past_phases).fetchall()
            if len(events) == self._max_events:
                position.event = events[-1][0]
                return Update(self._parse_events(events), more=True)
            step_range = None
            names, chunks = self._chunks(position.chunk, RECENT_CHUNKS + 1)
            if len(chunks) > RECENT_CHUNKS:
                skipped, step_range = self._many_chunks()
                names, chunks = self._chunks(max(position.chunk, skipped))
            samples = database.samples(position.sample, self._max_samples, latest=True)
        position.event = events[-1][0] if events else position.event
        if chunks:
            position.chunk, position.step = chunks[-1][0], chunks[-1][1] + chunks[-1][2]
        position.sample = samples[0][0] if samples else position.sample
        with self._reading(*DAMAGE):
            return Update(
                self._parse_events(events),
                tuple(chunk_of(row, names) for row in chunks),
                tuple(self._unpacker.unpack(*row[1:]) for row in reversed(samples)),
                step_range,
            )

    def _parse_events(self, rows: list[tuple[int, str, float, str]]) -> tuple[Event, ...]:
        with self._reading(*DAMAGE):
            return tuple(from_stored_rows([row[1:] for row in rows if row[1] in KINDS]))

    def _chunks(self, after: int, limit: int = -1) -> tuple[tuple[str, ...], list[Row]]:
        """The names of all series, and the rows of up to ``limit`` chunks; none if steps are not read."""
        return self._database.chunks(after, limit if self._polls_steps else 0)

    def _many_chunks(self) -> "tuple[int, StepRange | None]":
        """If there are many new steps: the last chunk before the recent ones, and all steps up to it in buckets."""
        if self._max_buckets is None:
            return 0, None
        chunk, stop = self._database.chunk_from_end(RECENT_CHUNKS)
        if chunk <= self._position.chunk or stop - self._position.step < _FEW_STEPS:
            return 0, None
        width = _FEW_STEPS >> 10
        while stop > width * self._max_buckets:
            width *= 2
        return chunk, self._step_range(0, stop, width)

    def _step_range(self, first: int, last: int, width: int, wanted: Collection[str] | None = None) -> "StepRange":
        from accel_engine.run import downsampled_steps  # see above

        return downsampled_steps.read(self._database, first, last, width, wanted)


def drop_discarded(events: Iterable[Event]) -> list[Event]:
    """Drop events of steps that were discarded when the run continued from an earlier checkpoint.

    Args:
        events: In order, including every :class:`~accel_engine.events.RunStarted`.
    """
    kept: list[Event] = []
    for event in events:
        if isinstance(event, RunStarted):
            kept = [before for before in kept if getattr(before, "step", 0) <= event.first_step]
        kept.append(event)
    return kept
