"""Reads a run: what was written since the last poll, any range of its steps, or everything in batches."""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import astuple

from accel_engine.devices.device_types import Sample
from accel_engine.events import KINDS, Event, RunStarted
from accel_engine.run.directory.run_paths import host_function, host_of_run
from accel_engine.run.engine.status import RunInfo, read_info
from accel_engine.run.reading.update import NewSteps, Update, chunk_of
from accel_engine.run.store.database import RunDatabase
from accel_engine.run.store.sample_packing import SampleUnpacker
from accel_engine.run.store.schema import EventRow, SampleRow, StoredChunk
from accel_engine.run.store.stored_events import decoded_events

if TYPE_CHECKING:  # NumPy is slow to import, and listing runs or sending a command does not need it
    from accel_engine.run.media import LoggedItem, MediaItem, MediaSeries
    from accel_engine.run.store.downsampled_steps import StepRange
    from accel_engine.run.store.steps import StepBatch

RECENT_CHUNKS = 64
"""How many of the latest chunks are read one by one even if most of a run is read in buckets."""

_FEW_STEPS = 1 << 16  # fewer new steps than this are read from their chunks

_BATCH_SAMPLES = 1 << 12


@dataclass(slots=True)
class _Position:
    """The last row read of each table, and the step after the last one read."""

    event: int = 0
    chunk: int = 0
    step: int = 0
    sample: int = 0
    data_version: int = -1


def _nothing() -> None:
    """Leaves a run that nobody mirrors."""


class RunReader:
    """Reads one run, live or ended; a run of a host is mirrored here meanwhile.

    Args:
        directory: The run's directory.
        max_samples: Maximum samples per poll, the latest ones; all by default. A long run has far more than
            a screen can show.
        max_buckets: Read many new steps in at most this many buckets, except the ones of the latest chunks;
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
        self._leave: Callable[[], None] = (
            host_function("mirrored_runs:follow")(directory) if host_of_run(directory) else _nothing
        )
        try:
            self._database = RunDatabase(directory, read_only=True)
        except BaseException:
            self._leave()
            raise
        self._position = _Position()
        self._unpacker = SampleUnpacker()

    def info(self, *, watched: bool = True) -> RunInfo:
        """Read the run's ``meta`` and status.

        Args:
            watched: Whether a run whose engine will be started again is starting; else it has the status of its end.
        """
        with self._reading():
            return read_info(self._database, watched=watched)

    @property
    def link_problem(self) -> str:
        """Why a run that is mirrored from a host is not up to date now; empty while it is, and for other runs."""
        return str(host_function("mirrored_runs:problem_of")(self.directory)) if host_of_run(self.directory) else ""

    def poll(self) -> Update:
        """Read what was written since the last call; the first call reads everything.

        Takes a few microseconds if nothing was written.
        """
        if self._database.data_version() == self._position.data_version and not self._database.is_outdated():
            return Update()
        with self._reading() as version:
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
            oldest = next(self._database.chunk_places(chunk), None)
            newest, stop = self._database.chunk_from_end()
            return NewSteps(oldest.first_step, stop, newest) if oldest else None

    def steps(self, first: int, last: int) -> "Iterator[StepBatch]":
        """Read the recorded steps from ``first`` up to but not including ``last``, in batches."""
        from accel_engine.run.store.steps import read_batches  # see above

        with self._reading():
            yield from read_batches(self._database, first, last)

    def chunk_ends(self, chunk: int = 0) -> list[tuple[float, int]]:
        """End time of each chunk after ``chunk``, and the number of steps taken by then."""
        with self._reading():
            return [(each.ended, each.stop) for each in self._database.chunk_places(chunk)]

    def events(self, after: int = 0, *kinds: type[Event]) -> Iterator[tuple[int, Event]]:
        """Read events with their ids, after the id ``after``; only of ``kinds`` if any are given."""
        names = [kind.kind() for kind in kinds] or list(KINDS)
        with self._reading():
            yield from decoded_events(self._database, self._database.events(after, kinds=names))

    def sample_batches(
        self, unpacker: SampleUnpacker, after: int = 0, limit: int = _BATCH_SAMPLES
    ) -> Iterator[tuple[int, list[Sample]]]:
        """Read samples in batches, each with the id of its last sample.

        Args:
            unpacker: Has unpacked all samples before; a new one at the beginning.
            after: Id of the last sample read before.
            limit: Maximum number of samples of a batch.
        """
        with self._reading():
            while rows := self._database.samples(after, limit):
                after = rows[-1].id
                yield after, self._unpacked(rows, unpacker)

    def media_list(self) -> "list[MediaSeries]":
        """List the series of logged images, texts and histograms by name, without reading one."""
        from accel_engine.run.media import KINDS, MediaSeries  # see above

        with self._reading():
            rows = self._database.media_series()
        found = (MediaSeries(kind, *astuple(row)[1:]) for kind in KINDS for row in rows if row.kind == kind)
        return sorted(found, key=lambda series: (series.name, series.kind))

    def media_steps(self, series: "MediaSeries") -> list[int]:
        """The steps of a series of :meth:`media_list`, in order."""
        with self._reading():
            return self._database.media_steps(series.kind, series.name)

    def media(self, series: "MediaSeries", step: int) -> "tuple[int, MediaItem] | None":
        """Read the newest item of a series up to a step, with its step; ``None`` if there is none."""
        from accel_engine.run.media import LoggedItem  # see above

        with self._reading():
            row = self._database.media(series.kind, series.name, step)
            item = row and self._database.decode("media", row.id, LoggedItem.of_row, row)
            return (item.step, item.item) if item else None

    def media_items(self, after: int = 0) -> "Iterator[LoggedItem]":
        """Read images, texts and histograms after the id ``after``, in the order in which they were added."""
        from accel_engine.run.media import KINDS, LoggedItem  # see above

        with self._reading():
            for row in self._database.media_after(after):
                if row.kind in KINDS:
                    yield self._database.decode("media", row.id, LoggedItem.of_row, row)

    def close(self) -> None:
        """Close the database."""
        self._database.close()
        self._leave()
        self._leave = _nothing

    @contextmanager
    def _reading(self) -> Iterator[int]:
        """Yields a number that changes when the run was written."""
        if self._database.is_outdated():
            self._database.close()
            self._database = RunDatabase(self.directory, read_only=True)
            self._position.data_version = -1
        yield self._database.data_version()
        self._database.check_unchanged()

    def _read(self) -> Update:
        database, position = self._database, self._position
        with database.snapshot():
            rows = list(database.events(position.event, self._max_events, past_phases=self._past_phases))
            events = self._decoded(rows)
            if len(rows) == self._max_events:
                position.event = rows[-1].id
                return Update(events, more=True)
            step_range = None
            names, chunks = self._chunks(position.chunk, RECENT_CHUNKS + 1)
            if len(chunks) > RECENT_CHUNKS:
                skipped, step_range = self._many_chunks()
                names, chunks = self._chunks(max(position.chunk, skipped))
            samples = database.latest_samples(position.sample, self._max_samples)
        update = Update(
            events,
            tuple(chunk_of(row, names) for row in chunks),
            tuple(self._unpacked(samples, self._unpacker)),
            step_range,
        )
        position.event = rows[-1].id if rows else position.event
        if chunks:
            position.chunk, position.step = chunks[-1].chunk.id, chunks[-1].chunk.stop
        position.sample = samples[-1].id if samples else position.sample
        return update

    def _decoded(self, rows: Iterable[EventRow]) -> tuple[Event, ...]:
        return tuple(event for _, event in decoded_events(self._database, rows))

    def _unpacked(self, rows: Iterable[SampleRow], unpacker: SampleUnpacker) -> list[Sample]:
        return [
            self._database.decode("sample", row.id, unpacker.unpack, row.time, row.device, row.readings) for row in rows
        ]

    def _chunks(self, after: int, limit: int = -1) -> tuple[tuple[str, ...], list[StoredChunk]]:
        """The names of all series, and up to ``limit`` chunks; none if steps are not read."""
        if not self._polls_steps:
            return (), []
        names = self._database.series()
        return names, self._database.chunks(names, after, limit)

    def _many_chunks(self) -> "tuple[int, StepRange | None]":
        """If there are many new steps: the last chunk before the recent ones, and all steps up to it in buckets."""
        if self._max_buckets is None:
            return 0, None
        chunk, stop = self._database.chunk_from_end(RECENT_CHUNKS)
        if stop - self._position.step < _FEW_STEPS:
            return 0, None
        width = _FEW_STEPS >> 10
        while stop > width * self._max_buckets:
            width *= 2
        return chunk, self._step_range(0, stop, width)

    def _step_range(self, first: int, last: int, width: int, wanted: Collection[str] | None = None) -> "StepRange":
        from accel_engine.run.store import downsampled_steps  # see above

        return downsampled_steps.read_range(self._database, first, last, width, wanted)


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


def read_run(directory: Path, *, watched: bool = True) -> RunInfo:
    """Read a run's ``meta`` and status, as :meth:`RunReader.info` does.

    Raises:
        RunError: There is no run, or this program cannot read it.
    """
    with closing(RunReader(directory, steps=False)) as reader:
        return reader.info(watched=watched)
