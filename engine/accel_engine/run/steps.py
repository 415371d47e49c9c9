"""Reads per-step series from a run's chunks."""

import math
import sqlite3
from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from accel_engine.run.schema import series_columns

THROUGHPUT = "steps/s"
"""Name of the steps per second, constant within a chunk. No series can have this name."""

TIME = "unix time"
"""Name of the steps' end times in seconds since the Unix epoch, evenly spaced within a chunk."""

Floats = npt.NDArray[np.float64]

_NAN = np.float32(math.nan).tobytes()


def working_seconds(started: Floats, ended: Floats, before: float = -math.inf) -> Floats:
    """Compute the durations of consecutive chunks, in seconds.

    Dispatches may overlap: a chunk's time starts when the one before it has ended.

    Args:
        started: Start time of each chunk, in seconds since the Unix epoch.
        ended: End time of each chunk, in seconds since the Unix epoch.
        before: End time of the chunk before them.
    """
    return ended - np.maximum(started, np.minimum(np.concatenate(([before], ended[:-1])), ended))


def read_steps(
    connection: sqlite3.Connection, first: int, last: int, wanted: Collection[str] | None = None
) -> dict[str, npt.NDArray[np.floating]]:
    """Read the steps from ``first`` up to but not including ``last``.

    Args:
        connection: The run's database.
        first: The first step.
        last: The step after the last.
        wanted: The series to read; all by default.

    Returns:
        Arrays of shape ``[last - first]``: float32 for each series and :data:`THROUGHPUT`, float64 for :data:`TIME`.
        NaN where nothing was recorded.
    """
    names = tuple(name for name in series_columns(connection) if wanted is None or name in wanted)
    columns = "".join(f', "{name}"' for name in names)
    rows = connection.execute(
        f"SELECT first_step, count, started, ended{columns} FROM chunk WHERE first_step < ? AND first_step >= "
        "coalesce((SELECT max(first_step) FROM chunk WHERE first_step <= ?), 0) ORDER BY first_step",
        (last, first),
    ).fetchall()
    values: dict[str, npt.NDArray[np.floating]] = {
        name: np.full(last - first, np.nan, np.float32) for name in (*names, THROUGHPUT)
    }
    values[TIME] = np.full(last - first, np.nan)
    if not rows:
        return values
    firsts, counts, started, ended, *blobs = zip(*rows, strict=True)
    lengths, ends = np.array(counts), np.array(ended, np.float64)
    seconds = working_seconds(np.array(started, np.float64), ends, _ended_before(connection, firsts[0]))
    in_chunk = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    index = in_chunk + np.repeat(np.array(firsts) - first, lengths)
    inside = (index >= 0) & (index < last - first)
    index = index[inside]
    for name, column in zip(names, blobs, strict=True):
        packed = b"".join(blob or count * _NAN for blob, count in zip(column, counts, strict=True))
        values[name][index] = np.frombuffer(packed, "<f4")[inside]
    rates = np.divide(lengths, seconds, out=np.full(len(seconds), np.nan), where=seconds > 0)
    values[THROUGHPUT][index] = np.repeat(rates, lengths)[inside]
    remaining = (np.repeat(lengths, lengths) - in_chunk - 1) * np.repeat(seconds / lengths, lengths)
    values[TIME][index] = (np.repeat(ends, lengths) - remaining)[inside]
    return values


def _ended_before(connection: sqlite3.Connection, step: int) -> float:
    row = connection.execute(
        "SELECT ended FROM chunk WHERE first_step < ? ORDER BY first_step DESC LIMIT 1", (step,)
    ).fetchone()
    return row[0] if row else -math.inf
