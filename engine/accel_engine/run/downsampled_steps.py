"""The summary of a run's steps: a pyramid of buckets, so that any stretch of any run is read in milliseconds.

Level 0 has buckets of 64 steps, and each level 16 times as many as the one below it. A row holds 64 consecutive
buckets of one series, and is written when all of its steps are there; what comes after the last row of a level is
taken from the level below, and in the end from the chunks. So nothing is ever changed, and a file without any
summary is read too, only slower. The rows that a deleted chunk was part of go with it, by a trigger of the file.
"""

import sqlite3
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from accel_engine.run.buckets import BUCKET, Buckets, empty, fold, merge
from accel_engine.run.schema import SPANS, series_columns
from accel_engine.run.steps import RATE, TIME, read_steps

ROW = 64
"""Buckets a row."""

WIDTHS = tuple(span // ROW for span in SPANS)
"""Steps of a bucket of each level."""

_BATCH = 1 << 18  # steps that are read at a time from the chunks of a file without a summary


@dataclass(frozen=True, slots=True, eq=False)
class StepRange:
    """Consecutive steps of a run, in buckets.

    Attributes:
        first_step: The step that the first bucket begins with, a multiple of ``width``.
        last_step: The step after the last one.
        width: Steps a bucket, a power of two; the last one may have fewer.
        series: Buckets of every series by name, and of :data:`~accel_engine.run.steps.RATE` and
            :data:`~accel_engine.run.steps.TIME`; of the latter only the means are exact.
    """

    first_step: int
    last_step: int
    width: int
    series: Mapping[str, Buckets]


def extend(connection: sqlite3.Connection, last: int) -> None:
    """Add the rows that are complete when the steps before ``last`` are there."""
    for level, span in enumerate(SPANS):
        for first in range(_end(connection, level), last - span + 1, span):
            if level:
                below = _rows(connection, level - 1, first, first + span)
                series = {name: merge(buckets, span // SPANS[level - 1]) for name, buckets in below.items()}
            else:
                steps = read_steps(connection, first, first + span)
                series = {name: fold(values, WIDTHS[0]) for name, values in steps.items()}
            # Nothing is said of a series without a value, but the time is: it marks how far a level goes.
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
    """Read a stretch of a run.

    Args:
        connection: The run's, in a transaction.
        first: Its first step; the stretch may begin some steps before.
        last: The step after its last, if the run goes so far.
        width: Steps a bucket, a power of two.
        wanted: The series to read, beside those by time; all when left out.
    """
    row = connection.execute("SELECT first_step + count FROM chunk ORDER BY first_step DESC LIMIT 1").fetchone()
    first -= first % width
    last = max(first, min(last, row[0] if row else 0))
    series: dict[str, Buckets] = {}
    at = first

    def put(part: Mapping[str, Buckets]) -> None:
        for name, buckets in part.items():
            whole = series.setdefault(name, empty(-(-(last - first) // width)))
            place = (at - first) // width
            whole[place : place + len(buckets)] = buckets

    levels = [level for level, each in enumerate(WIDTHS) if each <= width] if _exists(connection) else []
    for level in reversed(levels):
        stop = min(last - last % width, _end(connection, level) // width * width)
        if at < stop:
            rows = _rows(connection, level, at, stop, wanted)
            put({name: merge(buckets, width // WIDTHS[level]) for name, buckets in rows.items()})
            at = stop
    while at < last:
        stop = min(at + max(width, _BATCH), last)
        put({name: fold(values, width) for name, values in read_steps(connection, at, stop, wanted).items()})
        at = stop
    return StepRange(first, last, width, series)


def _rows(
    connection: sqlite3.Connection, level: int, first: int, last: int, wanted: Collection[str] | None = None
) -> dict[str, Buckets]:
    """The buckets of a level from one step to before another, both multiples of its width, and all of them there."""
    series: dict[str, Buckets] = {}
    start = first - first % SPANS[level]
    size = -(-(last - start) // SPANS[level]) * ROW
    names = (*(series_columns(connection) if wanted is None else wanted), RATE, TIME)
    for step, name, packed in connection.execute(
        "SELECT first_step, series, buckets FROM summary "
        f"WHERE level = ? AND first_step >= ? AND first_step < ? AND series IN ({', '.join('?' * len(names))})",
        (level, start, last, *names),
    ):
        if name not in series:
            series[name] = empty(size)
        place = (step - start) // WIDTHS[level]
        series[name][place : place + ROW] = np.frombuffer(packed, BUCKET)
    return {
        name: buckets[(first - start) // WIDTHS[level] : (last - start) // WIDTHS[level]]
        for name, buckets in series.items()
    }


def _end(connection: sqlite3.Connection, level: int) -> int:
    """The step after the last that a level knows."""
    row = connection.execute("SELECT max(first_step) FROM summary WHERE level = ?", (level,)).fetchone()
    return 0 if row[0] is None else int(row[0]) + SPANS[level]


def _exists(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'summary'").fetchone())
