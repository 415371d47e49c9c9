"""All that a run holds, read a piece at a time, so that a run of any length takes little memory."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from accel_engine.devices.reading import Sample
from accel_engine.errors import RunError
from accel_engine.events import KINDS, Event, RunStarted, from_json
from accel_engine.run.sample_packing import SampleUnpacker
from accel_engine.run.schema import connect, series_columns
from accel_engine.run.status import RunInfo, read_info
from accel_engine.run.steps import RATE, TIME, read_steps

PIECE = 1 << 16
"""Steps of a piece at most."""

_SAMPLES = 1 << 12


@dataclass(frozen=True, slots=True, eq=False)
class StepBatch:
    """Consecutive steps.

    Attributes:
        steps: Their numbers, counted from 0, int64 ``[n]``.
        times: When they ended, in seconds since the Unix epoch, float64 ``[n]``.
        rates: Steps a second, in steps of one dispatch all the same, float32 ``[n]``.
        series: float32 ``[n]`` by name; NaN also where a series was not recorded.
    """

    steps: npt.NDArray[np.int64]
    times: npt.NDArray[np.float64]
    rates: npt.NDArray[np.floating]
    series: dict[str, npt.NDArray[np.floating]]


@dataclass(frozen=True, slots=True)
class Growth:
    """Which steps are new.

    Attributes:
        first: The first of them, which may have been recorded, and forgotten, before.
        last: The step after the last.
        chunk: The newest chunk, to ask on from.
    """

    first: int
    last: int
    chunk: int


class BulkReader:
    """One run, for reading all of it; live or ended.

    Args:
        directory: The run's.

    Raises:
        RunError: There is no run there, or this program cannot read it; so do all methods.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._connection = connect(directory, read_only=True)

    def info(self) -> RunInfo:
        """What the run is and how it stands now."""
        with self._reading():
            return read_info(self._connection, self.directory)

    def series(self) -> tuple[str, ...]:
        """Names of what is recorded at every step."""
        with self._reading():
            return series_columns(self._connection)

    def growth(self, chunk: int = 0) -> Growth | None:
        """Which steps were recorded since a chunk, if there are any; since the beginning when left out."""
        with self._reading():
            first, newest = self._connection.execute(
                "SELECT min(first_step), max(id) FROM chunk WHERE id > ?", (chunk,)
            ).fetchone()
            if newest is None:
                return None
            (last,) = self._connection.execute(
                "SELECT first_step + count FROM chunk WHERE id = ?", (newest,)
            ).fetchone() or (first,)
        return Growth(first, last, newest)

    def steps(self, first: int, last: int) -> Iterator[StepBatch]:
        """The steps from ``first`` to before ``last`` that are there."""
        for start in range(first, last, PIECE):
            stop = min(start + PIECE, last)
            with self._reading():
                values = read_steps(self._connection, start, stop)
            there = np.isfinite(values[TIME])
            kept = {name: column[there] for name, column in values.items()}
            times = kept.pop(TIME)
            yield StepBatch(np.arange(start, stop)[there], times, kept.pop(RATE), kept)

    def ends(self, chunk: int = 0) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """When each of the chunks after ``chunk`` ended, and the steps taken by then; ``[chunks]`` each."""
        with self._reading():
            rows = self._connection.execute(
                "SELECT ended, first_step + count FROM chunk WHERE id > ? ORDER BY id", (chunk,)
            ).fetchall()
        return np.array([row[0] for row in rows], np.float64), np.array([row[1] for row in rows], np.int64)

    def events(self, after: int = 0, *kinds: type[Event]) -> Iterator[tuple[int, Event]]:
        """The events after the one of a number, with theirs; those of some kinds only, where there are any."""
        wanted = [kind.kind() for kind in kinds] or list(KINDS)
        marks = ", ".join("?" * len(wanted))
        with self._reading():
            for number, kind, time, body in self._connection.execute(
                f"SELECT id, kind, time, body FROM event WHERE id > ? AND kind IN ({marks}) ORDER BY id",
                (after, *wanted),
            ):
                yield number, from_json(kind, time, body)

    def samples(self, unpacker: SampleUnpacker, after: int = 0) -> Iterator[tuple[int, list[Sample]]]:
        """The samples after the one of a number, some at a time, with the number of the last of them.

        Args:
            unpacker: What has read all before; a new one at the beginning.
            after: The number.
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
        """Let go of the file."""
        self._connection.close()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, KeyError, TypeError, ValueError) as error:
            raise RunError(f"run {self.directory.name} cannot be read: {error}") from error


def standing(events: Iterable[Event]) -> list[Event]:
    """Drop what was said of steps that were forgotten when an engine went on from a checkpoint before them.

    Args:
        events: In order, with every :class:`~accel_engine.events.RunStarted` among them.
    """
    kept: list[Event] = []
    for event in events:
        if isinstance(event, RunStarted):
            kept = [before for before in kept if getattr(before, "step", 0) <= event.first_step]
        kept.append(event)
    return kept
