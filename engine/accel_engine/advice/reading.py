"""Reads what a run has recorded, in bounded time and memory."""

from contextlib import closing
from pathlib import Path

import numpy as np

from accel_engine.advice.recorded import Recorded, RecordedSeries
from accel_engine.devices.device_types import Sample
from accel_engine.run import RunReader, diagnostics
from accel_engine.run.reading.reader import drop_discarded
from accel_engine.run.runs.worker_runs import worker_runs_of
from accel_engine.run.store.buckets import Buckets, unpacked
from accel_engine.run.store.database import DATABASE
from accel_engine.run.store.downsampled_steps import StepRange

MAX_BUCKETS = 2048
"""Buckets that the steps of a run are read in, at most."""

OPENING_STEPS = 256
"""Steps at the beginning of a long run that are also read one by one."""

MAX_SAMPLES = 4096
"""Readings of devices, at most: the latest ones."""


def read_recorded(directory: Path) -> Recorded:
    """Read the records of a run, live or ended.

    Raises:
        RunError: There is no run, or this program cannot read it.
    """
    with closing(RunReader(directory, steps=False, max_samples=MAX_SAMPLES, past_phases=True)) as reader:
        info, update = reader.info(), reader.poll()
        new = reader.new_steps()
        last = new.stop if new else 0
        steps = reader.step_range(0, last, _width(last)) if last else None
        opening = reader.step_range(0, OPENING_STEPS, 1) if last > MAX_BUCKETS else None
    return Recorded(
        info=info,
        events=tuple(drop_discarded(update.events)),
        series=_series(steps) if steps else {},
        opening=_series(opening) if opening else {},
        steps=last,
        samples=_by_time(update.samples),
        diagnostics=diagnostics.read(directory),
        workers={name: read_recorded(each) for name, each in worker_runs_of(directory).items() if _is_run(each)},
    )


def _is_run(directory: Path) -> bool:
    return (directory / DATABASE).exists()


def _width(steps: int) -> int:
    width = 1
    while steps > width * MAX_BUCKETS:
        width *= 2
    return width


def _by_time(samples: tuple[Sample, ...]) -> tuple[Sample, ...]:
    return tuple(sorted(samples, key=lambda sample: sample.time))


def _series(steps: StepRange) -> dict[str, RecordedSeries]:
    return {name: _of_buckets(buckets, steps.first_step, steps.width) for name, buckets in steps.series.items()}


def _of_buckets(buckets: Buckets, first: int, width: int) -> RecordedSeries:
    low, high, total, finite = unpacked(buckets)
    known = np.flatnonzero(finite > 0)
    return RecordedSeries(
        first=first + width * known.astype(np.int64),
        mean=total[known] / finite[known],
        low=low[known].astype(np.float64),
        high=high[known].astype(np.float64),
        finite=finite[known].astype(np.int64),
        width=width,
    )
