"""Reads per-step series from a run's chunks."""

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from accel_engine.run.store.database import RunDatabase

THROUGHPUT = "steps/s"
"""Name of the steps per second, constant within a chunk. No series can have this name."""

TIME = "unix time"
"""Name of the steps' end times in seconds since the Unix epoch, evenly spaced within a chunk."""

MIN_RATE_SECONDS = 0.1
"""How long steps must have been timed for their rate to mean something: a script may log thousands at once."""

BATCH_STEPS = 1 << 16
"""Maximum steps of a batch."""

Floats = npt.NDArray[np.float64]

_NAN = np.float32(math.nan).tobytes()


@dataclass(frozen=True, slots=True, eq=False)
class StepBatch:
    """Consecutive steps."""

    steps: npt.NDArray[np.int64]
    """Step numbers, counted from 0, int64 ``[n]``."""
    times: npt.NDArray[np.float64]
    """End times in seconds since the Unix epoch, float64 ``[n]``."""
    steps_per_second: npt.NDArray[np.floating]
    """Steps per second, float32 ``[n]``; constant within a chunk."""
    series: dict[str, npt.NDArray[np.floating]]
    """float32 ``[n]`` by name; NaN where a series was not recorded."""

    def placed_by(self, name: str) -> "StepBatch":
        """The other series by the values of one, as whole numbers; without steps per second.

        Args:
            name: The series; where it has no finite value, which only a damaged run lacks, there is no row.
        """
        places = self.series.get(name, np.full(len(self.steps), np.nan))
        known = np.isfinite(places)
        others = {other: values[known] for other, values in self.series.items() if other != name}
        unknown = np.full(int(known.sum()), np.nan, np.float32)
        return StepBatch(places[known].astype(np.int64), self.times[known], unknown, others)


def working_seconds(started: Floats, ended: Floats, before: float = -math.inf) -> Floats:
    """Compute the durations of consecutive chunks, in seconds.

    Dispatches may overlap: a chunk's time starts when the one before it has ended.

    Args:
        started: Start time of each chunk, in seconds since the Unix epoch.
        ended: End time of each chunk, in seconds since the Unix epoch.
        before: End time of the chunk before them.
    """
    return ended - np.maximum(started, np.minimum(np.concatenate(([before], ended[:-1])), ended))


def rate_of(steps: float, seconds: float) -> float | None:
    """Steps per second; ``None`` if they were timed for less than :data:`MIN_RATE_SECONDS`."""
    return steps / seconds if seconds >= MIN_RATE_SECONDS else None


def read_steps(
    database: RunDatabase, first: int, last: int, wanted: Collection[str] | None = None
) -> dict[str, npt.NDArray[np.floating]]:
    """Read the steps from ``first`` up to but not including ``last``.

    Args:
        database: The run's database.
        first: The first step.
        last: The step after the last.
        wanted: The series to read; all by default.

    Returns:
        Arrays of shape ``[last - first]``: float32 for each series and :data:`THROUGHPUT`, float64 for :data:`TIME`.
        NaN where nothing was recorded.
    """
    names = tuple(name for name in database.series() if wanted is None or name in wanted)
    rows = database.chunks_between(first, last, names)
    values: dict[str, npt.NDArray[np.floating]] = {
        name: np.full(last - first, np.nan, np.float32) for name in (*names, THROUGHPUT)
    }
    values[TIME] = np.full(last - first, np.nan)
    if not rows:
        return values
    chunks = [row.chunk for row in rows]
    firsts, counts = np.array([(chunk.first_step, chunk.count) for chunk in chunks]).T
    started, ended = np.array([(chunk.started, chunk.ended) for chunk in chunks]).T
    seconds = working_seconds(started, ended, database.end_before(chunks[0].first_step, -math.inf))
    begins, stops = np.maximum(firsts, first), np.minimum(firsts + counts, last)
    lengths = np.maximum(stops - begins, 0)  # of the parts within the range
    index = np.arange(lengths.sum()) + np.repeat(begins - first - (np.cumsum(lengths) - lengths), lengths)
    in_chunk = index - np.repeat(firsts - first, lengths)
    parts = list(map(slice, (4 * (begins - firsts)).tolist(), (4 * (stops - firsts)).tolist()))
    gaps = [length * _NAN for length in lengths.tolist()]
    for number, name in enumerate(names):
        column = [row.series[number] for row in rows]
        packed = [blob[part] if blob else gap for blob, part, gap in zip(column, parts, gaps, strict=True)]
        values[name][index] = np.frombuffer(b"".join(packed), "<f4")
    rates = np.divide(counts, seconds, out=np.full(len(seconds), np.nan), where=seconds > 0)
    values[THROUGHPUT][index] = np.repeat(rates, lengths)
    remaining = (np.repeat(counts, lengths) - in_chunk - 1) * np.repeat(seconds / counts, lengths)
    values[TIME][index] = np.repeat(ended, lengths) - remaining
    return values


def read_batches(database: RunDatabase, first: int, last: int) -> Iterator[StepBatch]:
    """Read the recorded steps from ``first`` up to but not including ``last``, in batches of :data:`BATCH_STEPS`."""
    stop = first
    while (start := database.step_from(stop)) < last:
        stop = min(start + BATCH_STEPS, last)
        values = read_steps(database, start, stop)
        recorded = np.isfinite(values[TIME])
        series = {name: column[recorded] for name, column in values.items()}
        times = series.pop(TIME)
        yield StepBatch(np.arange(start, stop)[recorded], times, series.pop(THROUGHPUT), series)
