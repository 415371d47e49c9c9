"""A run's steps downsampled to a pyramid of buckets, so that any step range of any run is read in milliseconds.

Level 0 has buckets of 64 steps, and each level 16 times as many as the one below it. A row holds 64 consecutive
buckets of one series and is written once all of its steps are recorded. Steps after the last row of a level are
read from the level below, and finally from the chunks. So rows never change, and a file without them can be read,
only more slowly. A database trigger deletes the rows that a deleted chunk was part of.
"""

import sqlite3
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from accel_engine.run.buckets import BUCKET, Buckets, downsample, empty, merge
from accel_engine.run.schema import SPANS, series_columns
from accel_engine.run.steps import THROUGHPUT, TIME, read_steps

ROW = 64
"""Buckets per row."""

WIDTHS = tuple(span // ROW for span in SPANS)
"""Steps per bucket of each level."""

_BATCH = 1 << 18  # steps read at a time from the chunks of a file without buckets


@dataclass(frozen=True, slots=True, eq=False)
class StepRange:
    """Consecutive steps of a run, in buckets.

    Attributes:
        first_step: First step of the first bucket, a multiple of ``width``.
        stop_step: The step after the last one.
        width: Steps per bucket, a power of two; the last bucket may have fewer.
        series: Buckets by series name, and those of :data:`~accel_engine.run.steps.THROUGHPUT` and
            :data:`~accel_engine.run.steps.TIME`; for the latter, only the means are exact.
    """

    first_step: int
    stop_step: int
    width: int
    series: Mapping[str, Buckets]


def extend(connection: sqlite3.Connection, last: int) -> None:
    """Add the rows that are complete once all steps before ``last`` are recorded."""
    for level, span in enumerate(SPANS):
        for first in range(_end(connection, level), last - span + 1, span):
            if level:
                below = _rows(connection, level - 1, first, first + span)
                series = {name: merge(buckets, span // SPANS[level - 1]) for name, buckets in below.items()}
            else:
                steps = read_steps(connection, first, first + span)
                series = {name: downsample(values, WIDTHS[0]) for name, values in steps.items()}
            # A series without a value has no row. TIME always has one: it marks the end of a level.
            connection.executemany(
                "INSERT INTO summary VALUES (?, ?, ?, ?)",
                [
                    (level, first, name, buckets.tobytes())
                    for name, buckets in series.items()
                    if name == TIME or buckets["finite"].any()
                ],
            )


def read(
    connection: sqlite3.Connection, first: int, last: int, width: int, wanted: Collection[str] | None = None
) -> StepRange:
    """Read a range of a run's steps.

    Args:
        connection: The run's database, in a transaction.
        first: First step; the result may begin a few steps before it.
        last: The step after the last one, limited to the recorded steps.
        width: Steps per bucket, a power of two.
        wanted: The series to read, besides THROUGHPUT and TIME; all by default.
    """
    row = connection.execute("SELECT first_step + count FROM chunk ORDER BY first_step DESC LIMIT 1").fetchone()
    first -= first % width
    last = max(first, min(last, row[0] if row else 0))
    series: dict[str, Buckets] = {}
    at = first

    def store(part: Mapping[str, Buckets]) -> None:
        for name, buckets in part.items():
            whole = series.setdefault(name, empty(-(-(last - first) // width)))
            offset = (at - first) // width
            whole[offset : offset + len(buckets)] = buckets

    levels = [level for level, each in enumerate(WIDTHS) if each <= width] if _exists(connection) else []
    for level in reversed(levels):
        stop = min(last - last % width, _end(connection, level) // width * width)
        if at < stop:
            rows = _rows(connection, level, at, stop, wanted)
            store({name: merge(buckets, width // WIDTHS[level]) for name, buckets in rows.items()})
            at = stop
    while at < last:
        stop = min(at + max(width, _BATCH), last)
        store({name: downsample(values, width) for name, values in read_steps(connection, at, stop, wanted).items()})
        at = stop
    return StepRange(first, last, width, series)


def _rows(
    connection: sqlite3.Connection, level: int, first: int, last: int, wanted: Collection[str] | None = None
) -> dict[str, Buckets]:
    """Read the buckets of a level for a range of steps, all recorded; its limits are multiples of the width."""
    series: dict[str, Buckets] = {}
    start = first - first % SPANS[level]
    size = -(-(last - start) // SPANS[level]) * ROW
    names = (*(series_columns(connection) if wanted is None else wanted), THROUGHPUT, TIME)
    for step, name, packed in connection.execute(
        "SELECT first_step, series, buckets FROM summary "
        f"WHERE level = ? AND first_step >= ? AND first_step < ? AND series IN ({', '.join('?' * len(names))})",
        (level, start, last, *names),
    ):
        if name not in series:
            series[name] = empty(size)
        offset = (step - start) // WIDTHS[level]
        series[name][offset : offset + ROW] = np.frombuffer(packed, BUCKET)
    return {
        name: buckets[(first - start) // WIDTHS[level] : (last - start) // WIDTHS[level]]
        for name, buckets in series.items()
    }


def _end(connection: sqlite3.Connection, level: int) -> int:
    """The step after the last one of a level."""
    row = connection.execute("SELECT max(first_step) FROM summary WHERE level = ?", (level,)).fetchone()
    return 0 if row[0] is None else int(row[0]) + SPANS[level]


def _exists(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'summary'").fetchone())
