"""Reads everything in a run in batches, so that a run of any length takes little memory."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from accel_engine.devices.device_types import Sample
from accel_engine.errors import RunError
from accel_engine.events import KINDS, Event, RunStarted, from_stored
from accel_engine.run.sample_packing import SampleUnpacker
from accel_engine.run.schema import connect, series_columns
from accel_engine.run.status import RunInfo, read_info
from accel_engine.run.steps import THROUGHPUT, TIME, read_steps

BATCH_STEPS = 1 << 16
"""Maximum steps of a batch."""

_SAMPLES = 1 << 12


@dataclass(frozen=True, slots=True, eq=False)
class StepBatch:
    """Consecutive steps.

    Attributes:
        steps: Step numbers, counted from 0, int64 ``[n]``.
        times: End times in seconds since the Unix epoch, float64 ``[n]``.
        steps_per_second: Steps per second, float32 ``[n]``; constant within a chunk.
        series: float32 ``[n]`` by name; NaN where a series was not recorded.
    """

    steps: npt.NDArray[np.int64]
    times: npt.NDArray[np.float64]
    steps_per_second: npt.NDArray[np.floating]
    series: dict[str, npt.NDArray[np.floating]]


@dataclass(frozen=True, slots=True)
class NewSteps:
    """The range of steps recorded since a chunk.

    Attributes:
        first: The first new step; it may replace one that was recorded and discarded before.
        stop: The step after the last new one.
        chunk: Id of the newest chunk, for the next call.
    """

    first: int
    stop: int
    chunk: int


class BulkReader:
    """Reads all of one run, live or ended.

    Args:
        directory: The run's directory.

    Raises:
        RunError: There is no run, or this program cannot read it. All methods raise it, too.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._connection = connect(directory, read_only=True)

    def info(self) -> RunInfo:
        """Read the run's ``meta`` and status."""
        with self._reading():
            return read_info(self._connection, self.directory)

    def series(self) -> tuple[str, ...]:
        """Names of the per-step series."""
        with self._reading():
            return series_columns(self._connection)

    def new_steps(self, chunk: int = 0) -> NewSteps | None:
        """Find the steps recorded after a chunk (default: all); ``None`` if there are none."""
        with self._reading():
            first, newest = self._connection.execute(
                "SELECT min(first_step), max(id) FROM chunk WHERE id > ?", (chunk,)
            ).fetchone()
            if newest is None:
                return None
            (last,) = self._connection.execute(
                "SELECT first_step + count FROM chunk WHERE id = ?", (newest,)
            ).fetchone() or (first,)
        return NewSteps(first, last, newest)

    def steps(self, first: int, last: int) -> Iterator[StepBatch]:
        """Read the recorded steps from ``first`` up to but not including ``last``."""
        for start in range(first, last, BATCH_STEPS):
            stop = min(start + BATCH_STEPS, last)
            with self._reading():
                values = read_steps(self._connection, start, stop)
            recorded = np.isfinite(values[TIME])
            series = {name: column[recorded] for name, column in values.items()}
            times = series.pop(TIME)
            yield StepBatch(np.arange(start, stop)[recorded], times, series.pop(THROUGHPUT), series)

    def chunk_ends(self, chunk: int = 0) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """End time of each chunk after ``chunk``, and the number of steps taken by then; ``[chunks]`` each."""
        with self._reading():
            rows = self._connection.execute(
                "SELECT ended, first_step + count FROM chunk WHERE id > ? ORDER BY id", (chunk,)
            ).fetchall()
        return np.array([row[0] for row in rows], np.float64), np.array([row[1] for row in rows], np.int64)

    def events(self, after: int = 0, *kinds: type[Event]) -> Iterator[tuple[int, Event]]:
        """Read events with their ids, after the id ``after``; only those of ``kinds`` if any are given."""
        names = [kind.kind() for kind in kinds] or list(KINDS)
        placeholders = ", ".join("?" * len(names))
        with self._reading():
            for number, kind, time, body in self._connection.execute(
                f"SELECT id, kind, time, body FROM event WHERE id > ? AND kind IN ({placeholders}) ORDER BY id",
                (after, *names),
            ):
                yield number, from_stored(kind, time, body)

    def samples(self, unpacker: SampleUnpacker, after: int = 0) -> Iterator[tuple[int, list[Sample]]]:
        """Read samples in batches, each with the id of its last sample.

        Args:
            unpacker: Has unpacked all samples before; a new one at the beginning.
            after: Id of the last sample read before.
        """
        while True:
            with self._reading():
                rows = self._connection.execute(
                    "SELECT id, time, device, readings FROM sample WHERE id > ? ORDER BY id LIMIT ?", (after, _SAMPLES)
                ).fetchall()
                if not rows:
                    return
                samples = [unpacker.unpack(*row[1:]) for row in rows]
            after = rows[-1][0]
            yield after, samples

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, KeyError, TypeError, ValueError) as error:
            raise RunError(f"run {self.directory.name} cannot be read: {error}") from error


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
