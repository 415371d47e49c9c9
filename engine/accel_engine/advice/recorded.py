"""Reads a run for the rules of advice, in bounded time and memory."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from accel_engine.devices.device_types import Sample
from accel_engine.events import EpochEnded, Event, ModelBuilt, Phase, PhaseChanged, RunEnded, RunStarted, Validated
from accel_engine.plan import Plan
from accel_engine.run import RunReader, diagnostics
from accel_engine.run.diagnostics import Diagnostics
from accel_engine.run.engine.status import RunInfo
from accel_engine.run.history.history import History, fold
from accel_engine.run.reading.reader import drop_discarded
from accel_engine.run.runs.worker_runs import worker_runs_of
from accel_engine.run.store.buckets import Buckets, bucket_statistics
from accel_engine.run.store.database import DATABASE
from accel_engine.run.store.downsampled_steps import StepRange
from accel_engine.run.store.steps import TIME

Floats = npt.NDArray[np.float64]

Kind = TypeVar("Kind", bound=Event)


@dataclass(frozen=True, slots=True)
class RecordedSeries:
    """A series of a run, in buckets of some steps."""

    first: npt.NDArray[np.int64]
    """First step of each bucket, int64 ``[n]``."""
    mean: Floats
    """Mean over its finite values, ``[n]``."""
    low: Floats
    """The smallest value, ``[n]``."""
    high: Floats
    """The largest one, ``[n]``."""
    finite: npt.NDArray[np.int64]
    """Number of its finite values, int64 ``[n]``; buckets without one are left out."""
    width: int
    """Steps of a bucket."""

    def __len__(self) -> int:
        return len(self.mean)

    def between(self, first: int, stop: int) -> "RecordedSeries":
        """The buckets that begin from a step to before another one."""
        inside = slice(*np.searchsorted(self.first, (first, stop)))
        return RecordedSeries(
            self.first[inside], self.mean[inside], self.low[inside], self.high[inside], self.finite[inside], self.width
        )


EMPTY = RecordedSeries(np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0, np.int64), 1)


@dataclass(frozen=True, slots=True)
class FasterPlan:
    """Changes of a plan that a race on this machine found to be faster."""

    changes: Mapping[str, Any]
    """Fields of the plan, with their values."""
    factor: float
    """By how much."""


@dataclass(frozen=True, eq=False)
class Recorded:
    """A run's records, in bounded memory."""

    info: RunInfo
    """Its ``meta`` and status."""
    events: Sequence[Event]
    """Its events in order, without discarded steps."""
    series: Mapping[str, RecordedSeries] = field(default_factory=dict)
    """Its series by name; the steps per second under :data:`accel_engine.run.store.steps.THROUGHPUT`, and the end times
    of steps under :data:`accel_engine.run.store.steps.TIME`."""
    opening: Mapping[str, RecordedSeries] = field(default_factory=dict)
    """Its series over its first steps, one bucket a step; empty if ``series`` has these."""
    steps: int = 0
    """Number of recorded steps."""
    samples: Sequence[Sample] = ()
    """Readings of devices in the order of time; of a long run, the latest :data:`MAX_SAMPLES`."""
    diagnostics: Diagnostics = field(default_factory=Diagnostics)
    """The model's layers, the data, and the last validation."""
    faster: FasterPlan | None = None
    """The faster plan that a race has found; ``None`` without one."""
    workers: Mapping[str, "Recorded"] = field(default_factory=dict)
    """The records of the other workers by name, where their runs are visible from here."""

    @property
    def plan(self) -> Plan | None:
        """The plan; ``None`` for a script, an import, and where it cannot be read."""
        return self.info.plan if self.info.has_engine else None

    @cached_property
    def history(self) -> History:
        """The history that follows from the run's events."""
        return fold(History(), self.events)

    @property
    def built(self) -> ModelBuilt | None:
        """The model and the batch; of a script's latest part."""
        return self.history.built

    @property
    def ended(self) -> RunEnded | None:
        """The end; ``None`` while the run is live."""
        return None if self.info.status.live else self.history.ended

    @cached_property
    def device_kinds(self) -> frozenset[str]:
        """The kinds of devices that train: ``cpu``, ``gpu``, ``tpu``; empty if unknown."""
        found = self.history.devices
        return frozenset(device.kind for device in found.devices) if found else frozenset()

    @cached_property
    def training_devices(self) -> tuple[str, ...]:
        """Ids of the devices that train, with readings: where they are not matched, all of their kind; else all."""
        if not self.device_kinds:
            return self.devices
        found = self.history.devices
        known = {device.device for device in found.devices if device.device} if found else set()
        return tuple(
            device
            for device in self.devices
            if (device in known if known else device.partition(":")[0] in self.device_kinds)
        )

    @property
    def epochs(self) -> tuple[EpochEnded, ...]:
        """The ends of epochs."""
        return self.history.ended_epochs

    @property
    def validations(self) -> tuple[Validated, ...]:
        """All validations of the run, oldest first."""
        return self.history.validations

    def all(self, kind: type[Kind]) -> tuple[Kind, ...]:
        """The events of a kind, in order."""
        return tuple(event for event in self.events if isinstance(event, kind))

    def last(self, kind: type[Kind]) -> Kind | None:
        """The last event of a kind; ``None`` if there is none."""
        return next((event for event in reversed(self.events) if isinstance(event, kind)), None)

    def of(self, name: str) -> RecordedSeries:
        """A series by name; an empty one if it was not recorded."""
        return self.series.get(name, EMPTY)

    def validation(self, metric: str) -> tuple[npt.NDArray[np.int64], Floats]:
        """The steps and finite values of a metric of validation, both ``[validations]``."""
        points = [(each.step, each.metrics[metric]) for each in self.validations if metric in each.metrics]
        points = [(step, value) for step, value in points if value is not None and np.isfinite(value)]
        steps, values = zip(*points, strict=True) if points else ((), ())
        return np.array(steps, np.int64), np.array(values, np.float64)

    @cached_property
    def training_samples(self) -> tuple[Sample, ...]:
        """The readings from the first step to the last one; all of a run whose steps have no times."""
        ends = self.of(TIME)
        if not len(ends):
            return tuple(self.samples) if self.steps else ()
        first, last = ends.mean[0], ends.mean[-1]  # of this series, only means are exact
        return tuple(sample for sample in self.samples if first <= sample.time <= last)

    def seconds_worked(self, since: float, until: float) -> float:
        """Seconds between two times without those in which the run was paused, or had no engine."""
        stopped, is_paused = 0.0, False
        for before, event in pairwise(self.events):
            if isinstance(before, PhaseChanged) and before.phase in (Phase.PAUSED, Phase.TRAINING, Phase.SCRIPT):
                is_paused = before.phase is Phase.PAUSED  # it may validate or save meanwhile
            if is_paused or isinstance(event, RunStarted):
                stopped += max(0.0, min(until, event.time) - max(since, before.time))
            is_paused = is_paused and not isinstance(event, RunStarted)
        return max(0.0, until - since - stopped)

    def readings(self, device: str, name: str) -> tuple[Floats, Floats]:
        """The times and values of a reading of a device, both ``[samples]``, without missing ones.

        From the first step to the last one, pauses included.
        """
        found = [
            (sample.time, reading.value)
            for sample in self.training_samples
            if sample.device == device and (reading := sample.readings.get(name)) and reading.value is not None
        ]
        times, values = zip(*found, strict=True) if found else ((), ())
        return np.array(times, np.float64), np.array(values, np.float64)

    @cached_property
    def cores(self) -> int:
        """Number of the host's processors with readings."""
        return max(
            (sum(name.startswith("core_") for name in sample.readings) for sample in self.training_samples), default=0
        )

    @property
    def devices(self) -> tuple[str, ...]:
        """Ids of the devices with readings."""
        return tuple(dict.fromkeys(sample.device for sample in self.samples))


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
    low, high, total, finite = bucket_statistics(buckets)
    known = np.flatnonzero(finite > 0)
    return RecordedSeries(
        first=first + width * known.astype(np.int64),
        mean=total[known] / finite[known],
        low=low[known].astype(np.float64),
        high=high[known].astype(np.float64),
        finite=finite[known].astype(np.int64),
        width=width,
    )
