"""A run's steps downsampled to a pyramid of buckets, so that any step range of any run is read in milliseconds.

Level 0 has buckets of 64 steps, and each level 16 times as many as the one below it. A row holds 64 consecutive
buckets of one series and is written once the run has passed its steps, unless none was recorded. Steps after the last
row of a level are read from the level below, and finally from the chunks. So rows never change, and a file without them
can be read, only more slowly. A database trigger deletes the rows that a deleted chunk was part of.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from accel_engine.run.store.buckets import BUCKET, Buckets, bucket_statistics, downsample, empty, merge
from accel_engine.run.store.database import RunDatabase
from accel_engine.run.store.schema import SPANS, SummaryRow
from accel_engine.run.store.steps import THROUGHPUT, TIME, read_steps

ROW = 64
"""Buckets per row."""

WIDTHS = tuple(span // ROW for span in SPANS)
"""Steps per bucket of each level."""

_BATCH = 1 << 18  # steps read at a time from the chunks of a file without buckets


@dataclass(frozen=True, slots=True, eq=False)
class StepRange:
    """Consecutive steps of a run, in buckets."""

    first_step: int
    """First step of the first bucket, a multiple of ``width``."""
    stop_step: int
    """The step after the last one."""
    width: int
    """Steps per bucket, a power of two; the last bucket may have fewer."""
    series: Mapping[str, Buckets]
    """Buckets by series name, also of :data:`~accel_engine.run.store.steps.THROUGHPUT` and
    :data:`~accel_engine.run.store.steps.TIME`; for the latter, only the means are exact."""


def extend(database: RunDatabase, last: int) -> None:
    """Add the rows that are complete once all steps before ``last`` are recorded."""
    for level, span in enumerate(SPANS):
        stop = database.summary_end(level)
        while (first := database.step_from(stop) // span * span) + span <= last:
            stop = first + span
            if level:
                below = _rows(database, level - 1, first, stop)
                series = {name: merge(buckets, span // SPANS[level - 1]) for name, buckets in below.items()}
            else:
                steps = read_steps(database, first, stop)
                series = {name: downsample(values, WIDTHS[0]) for name, values in steps.items()}
            database.add_summary(  # a series without a value has no row
                (level, first, name, buckets.tobytes()) for name, buckets in series.items() if buckets["finite"].any()
            )


def read_range(
    database: RunDatabase, first: int, last: int, width: int, wanted: Collection[str] | None = None
) -> StepRange:
    """Read a range of a run's steps.

    Args:
        database: The run's database, in a transaction.
        first: First step; the result may begin a few steps before it.
        last: The step after the last one, limited to the recorded steps.
        width: Steps per bucket, a power of two.
        wanted: The series to read, besides THROUGHPUT and TIME; all by default.
    """
    first -= first % width
    last = max(first, min(last, database.chunk_from_end()[1]))
    size = -(-(last - first) // width)
    series = {name: empty(size) for name in (THROUGHPUT, TIME) if size}
    at = first

    def store(part: Mapping[str, Buckets]) -> None:
        for name, buckets in part.items():
            whole = series.setdefault(name, empty(size))
            offset = (at - first) // width
            whole[offset : offset + len(buckets)] = buckets

    levels = [level for level, each in enumerate(WIDTHS) if each <= width]
    for level in reversed(levels):
        stop = min(last - last % width, database.summary_end(level) // width * width)
        if at < stop:
            rows = _rows(database, level, at, stop, wanted)
            store({name: merge(buckets, width // WIDTHS[level]) for name, buckets in rows.items()})
            at = stop
    while (at := max(at, database.step_from(at) // width * width)) < last:
        stop = min(at + max(width, _BATCH), last)
        store({name: downsample(values, width) for name, values in read_steps(database, at, stop, wanted).items()})
        at = stop
    return StepRange(first, last, width, series)


def decode_summary(row: SummaryRow) -> Buckets:
    """The buckets of a row.

    Raises:
        ValueError: No steps have these statistics, or no row begins at this step.
    """
    if row.first_step % SPANS[row.level] or len(row.buckets) != ROW * BUCKET.itemsize:
        raise ValueError("it has not the steps of a row")
    buckets = np.frombuffer(row.buckets, BUCKET)
    low, high, total, finite = bucket_statistics(buckets)
    known = finite > 0
    if not (np.isfinite(total).all() and (finite <= WIDTHS[row.level]).all() and (low[known] <= high[known]).all()):
        raise ValueError("its buckets are damaged")
    if not (np.isfinite(low[known]).all() and np.isfinite(high[known]).all()):
        raise ValueError("its buckets are damaged")
    return buckets


def _rows(
    database: RunDatabase, level: int, first: int, last: int, wanted: Collection[str] | None = None
) -> dict[str, Buckets]:
    """Read the buckets of a level for a range of steps, all recorded; its limits are multiples of the width."""
    series: dict[str, Buckets] = {}
    start = first - first % SPANS[level]
    size = -(-(last - start) // SPANS[level]) * ROW
    names = (*(database.series() if wanted is None else wanted), THROUGHPUT, TIME)
    for row in database.summary(level, start, last, names):
        if row.series not in series:
            series[row.series] = empty(size)
        offset = (row.first_step - start) // WIDTHS[level]
        key = (level, row.first_step, row.series)
        series[row.series][offset : offset + ROW] = database.decode("summary", key, decode_summary, row)
    return {
        name: buckets[(first - start) // WIDTHS[level] : (last - start) // WIDTHS[level]]
        for name, buckets in series.items()
    }
