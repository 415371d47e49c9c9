"""Reads a run's device metrics as curves over its steps."""

import time

import numpy as np
import numpy.typing as npt

from accel_engine.run import RunReader, Update
from accel_engine.run.store.sample_packing import SampleUnpacker
from accel_engine.text import printable
from accel_tui.run_state.curve import CAPACITY, DeviceCurves, Floats, RecordedCurve, step_times

READINGS = ("utilization", "memory_used", "temperature", "power")
"""The metrics that can be charted: in %, GiB, degrees Celsius, W."""

_GIB = 2.0**30

MAX_ROWS = 1000
"""Maximum number of samples per read, so that nothing else waits for a long run's."""


class DeviceCurvesReader:
    """Reads device metrics once a chart of any of them is shown.

    Args:
        seconds: Minimum interval between updates; devices are sampled once a second.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._unpacker = SampleUnpacker(frozenset(READINGS))
        self._traces: dict[tuple[str, str], ForwardFilledCurve] = {}
        self._last = 0
        self._behind = True
        self._names: frozenset[str] = frozenset()
        self._stale = False
        self._made = 0.0

    def read(
        self, reader: RunReader, names: frozenset[str], step_end_times: RecordedCurve, update: Update
    ) -> DeviceCurves | None:
        """Read some samples, and return updated curves.

        Args:
            reader: Reads the run.
            names: Some of :data:`READINGS`; nothing is read if empty.
            step_end_times: End time of each step, in seconds since the Unix epoch.
            update: What is new in the run since the last call.

        Returns:
            The curves; ``None`` if unchanged, or updated less than ``seconds`` ago.

        Raises:
            RunError: The run can no longer be read.
        """
        self._behind = self._behind or bool(update.samples)
        self._stale = self._stale or bool(update)
        if names and self._behind:
            self._behind = self._read(reader)
            self._stale = self._stale or self._behind
        due = names and self._stale and time.monotonic() - self._made >= self._seconds
        if names == self._names and not due:
            return None
        self._names, self._stale, self._made = names, False, time.monotonic()
        return self._curves(names, step_end_times)

    def _read(self, reader: RunReader) -> bool:
        """Read some samples; returns whether there may be more."""
        batch = next(reader.sample_batches(self._unpacker, self._last, MAX_ROWS), None)
        if batch is None:
            return False
        found: dict[tuple[str, str], list[tuple[float, float]]] = {}
        self._last, samples = batch
        for sample in samples:
            for name, reading in sample.readings.items():
                if reading.value is not None:
                    value = reading.value / (_GIB if reading.unit == "B" else 1)
                    found.setdefault((name, printable(sample.device)), []).append((sample.time, value))
        for key, values in found.items():
            self._traces.setdefault(key, ForwardFilledCurve()).extend(*zip(*values, strict=True))
        return True

    def _curves(self, names: frozenset[str], step_end_times: RecordedCurve) -> DeviceCurves:
        curves: dict[str, dict[str, RecordedCurve]] = {}
        for (name, device), trace in self._traces.items():
            if name in names and (curve := trace.by_step(step_end_times)).end_step:
                curves.setdefault(name, {})[device] = curve
        return curves


class ForwardFilledCurve:
    """Values by time in bounded memory that keep minima and maxima.

    Equally many consecutive values are merged; twice as many above
    :data:`~accel_tui.run_state.curve.CAPACITY` entries.
    """

    def __init__(self) -> None:
        self._width = 1
        self._kept = np.empty((4, 0))  # time, low, high, mean
        self._rest = np.empty((4, 0))  # too few to merge yet

    def __len__(self) -> int:
        return self._kept.shape[1] + self._rest.shape[1]

    def extend(self, times: npt.ArrayLike, values: npt.ArrayLike) -> None:
        """Append finite values, both of shape ``[n]``, by rising time."""
        new = np.asarray(values, np.float64)
        self._rest = np.concatenate((self._rest, [np.asarray(times, np.float64), new, new, new]), axis=1)
        while full := min(self._rest.shape[1] // self._width, CAPACITY - self._kept.shape[1]):
            cut = full * self._width
            self._kept = np.concatenate((self._kept, _merged(self._rest[:, :cut], self._width)), axis=1)
            self._rest = self._rest[:, cut:]
            if self._kept.shape[1] == CAPACITY:
                self._kept, self._width = _merged(self._kept, 2), 2 * self._width

    def by_step(self, step_end_times: RecordedCurve) -> RecordedCurve:
        """The curve over steps: each step has the values read during it, else the last one before it.

        Args:
            step_end_times: End time of each step, in the unit of the times.
        """
        times, low, high, mean = np.concatenate((self._kept, self._rest), axis=1)
        steps, ends = step_times(step_end_times)
        if not ends.size or not times.size:
            return RecordedCurve()
        start = max(int(np.searchsorted(times, ends[0], "right")) - 1, 0)
        stop = int(np.searchsorted(times, ends[-1], "right"))
        positions = np.interp(times[start:stop], ends, steps)
        return forward_fill(
            positions,
            low[start:stop],
            high[start:stop],
            mean[start:stop],
            step_end_times.end_step,
            step_end_times.width,
        )


def forward_fill(positions: Floats, low: Floats, high: Floats, mean: Floats, count: int, width: int) -> RecordedCurve:
    """Make a curve of values that each hold from one step until the next.

    Args:
        positions: The steps, rising, shape ``[n]``.
        low: Minimum at each step, shape ``[n]``.
        high: Maximum at each step, shape ``[n]``.
        mean: Mean at each step, shape ``[n]``.
        count: Steps of the run.
        width: Steps per bucket.
    """
    inside = positions < count
    positions, low, high, mean = positions[inside], low[inside], high[inside], mean[inside]
    if not positions.size:
        return RecordedCurve()
    buckets = positions.astype(np.int64) // width
    begin, end = int(buckets[0]), -(-count // width)
    numbers = np.arange(begin, end)
    last = np.searchsorted(buckets, numbers, "right") - 1  # the last value, up to the end of each bucket
    lows, highs, means = mean[last], mean[last], mean[last]
    heads = np.flatnonzero(np.diff(buckets, prepend=begin - 1))
    own = buckets[heads] - begin
    lows[own], highs[own] = np.minimum.reduceat(low, heads), np.maximum.reduceat(high, heads)
    means[own] = np.add.reduceat(mean, heads) / np.diff(heads, append=len(mean))
    steps = np.minimum((numbers + 1) * width, count) - numbers * width
    return RecordedCurve(count, width, float(means[-1]), lows, highs, means * steps, steps, begin * width)


def _merged(kept: Floats, number: int) -> Floats:
    """Merge every ``number`` neighbours into one."""
    time, low, high, mean = kept.reshape(4, -1, number)
    return np.array([time[:, -1], low.min(axis=1), high.max(axis=1), mean.mean(axis=1)])
