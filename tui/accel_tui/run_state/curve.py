"""Downsampled per-step series in bounded memory that keep minima and maxima."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.run.store.buckets import Buckets, Statistics, statistics

CAPACITY = 4096
"""Maximum number of buckets of a curve. Once a bucket has several steps, there are at least half as many buckets:
several per dot of the widest terminal."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class RecordedCurve:
    """A per-step series in buckets of equally many consecutive steps.

    Bucket ``i`` covers ``width`` steps from ``first_step + i * width`` on; the last one may be incomplete. When more
    than :data:`CAPACITY` buckets would be needed, ``width`` doubles. NaN and infinities are gaps: counted, and
    otherwise ignored. ``RecordedCurve()`` has no steps.
    """

    end_step: int = 0
    """The step after the last."""
    width: int = 1
    """Steps per bucket, a power of two."""
    last_value: float = math.nan
    """The latest finite value; NaN if there is none."""
    low: Floats = field(default_factory=lambda: np.empty(0))
    """Minimum finite value of each bucket, NaN if it has none."""
    high: Floats = field(default_factory=lambda: np.empty(0))
    """Maximum finite value of each bucket, NaN if it has none."""
    total: Floats = field(default_factory=lambda: np.empty(0))
    """Sum of each bucket's finite values."""
    finite: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    """Number of each bucket's finite values."""
    first_step: int = 0
    """The first step of the curve; not 0 for a part of a run."""

    @classmethod
    def of(cls, buckets: Buckets, first_step: int, end_step: int, width: int) -> "RecordedCurve":
        """Make a curve from the buckets of downsampled steps.

        Args:
            buckets: The buckets from ``first_step`` up to ``end_step``.
            first_step: The first step of the first bucket.
            end_step: The step after the last bucket.
            width: Steps per bucket.
        """
        low, high, total = (buckets[name].astype(np.float64) for name in ("low", "high", "total"))
        finite = buckets["finite"].astype(np.int64)
        return cls(end_step, width, _latest(divide_steps(total, finite)), low, high, total, finite, first_step)

    @property
    def buckets(self) -> Statistics:
        """Minimum, maximum, sum and number of finite values of each bucket."""
        return Statistics(self.low, self.high, self.total, self.finite)

    def with_buckets(self, buckets: Statistics, **changes: Any) -> "RecordedCurve":
        """The curve with other buckets, and other fields changed."""
        low, high, total, finite = buckets
        return replace(self, low=low, high=high, total=total, finite=finite, **changes)

    @property
    def is_sparse(self) -> bool:
        """Whether most steps between its first and its last value have none, as if it is logged every few steps."""
        known = np.flatnonzero(self.finite)
        return known.size > 1 and 2 * int(self.finite.sum()) < (known[-1] - known[0]) * self.width

    @property
    def gaps(self) -> int:
        """Number of steps whose value was not finite."""
        return self.end_step - self.first_step - int(self.finite.sum())

    def has_values_from(self, step: int) -> bool:
        """Whether a bucket that begins at a step or after it has a finite value."""
        return bool(self.finite[max(0, -(-(step - self.first_step) // self.width)) :].any())

    @property
    def means(self) -> Floats:
        """Mean of each bucket's finite values, NaN where it has none."""
        return divide_steps(self.total, self.finite)

    def extend(self, values: npt.NDArray[np.floating]) -> "RecordedCurve":
        """Return the curve with values appended.

        Args:
            values: Shape ``[n]``, one per step.
        """
        return extended_curve([self], values[np.newaxis])[0]

    def padded(self, step: int) -> "RecordedCurve":
        """Return the curve extended to a step with gaps, however far it is."""
        width = self.width
        while step - self.first_step > width * CAPACITY:
            width *= 2
        old = self.widened(width).buckets
        missing = -(-(step - self.first_step) // width) - len(old.low)
        gaps = np.full(missing, math.nan), np.full(missing, math.nan), np.zeros(missing), np.zeros(missing, np.int64)
        joined = Statistics(*(np.concatenate(fields) for fields in zip(old, gaps, strict=True)))
        return self.with_buckets(joined, end_step=step, width=width)

    def truncate(self, step: int) -> "RecordedCurve":
        """Return the curve without the steps from ``step`` on, e.g. when a run continues from an earlier checkpoint.

        Exact if ``step`` ends a bucket, as it always does while ``width`` is 1. A bucket that is cut keeps its bounds
        and mean. ``last_value`` becomes the mean of the last bucket that has one.
        """
        if step >= self.end_step:
            return self
        step = max(step, self.first_step)
        kept = -(-(step - self.first_step) // self.width)
        cut = Statistics(*(field[:kept].copy() for field in self.buckets))
        rest = (step - self.first_step) % self.width
        if rest and cut.finite[-1] > rest:
            cut.total[-1], cut.finite[-1] = cut.total[-1] / cut.finite[-1] * rest, rest
        return self.with_buckets(cut, end_step=step, last_value=_latest(divide_steps(cut.total, cut.finite)))

    def at(self, step: int) -> tuple[float, float, float] | None:
        """Minimum, maximum and mean of the bucket of a step; ``None`` outside the curve, or without values."""
        if not self.first_step <= step < self.end_step:
            return None
        index = (step - self.first_step) // self.width
        finite = int(self.finite[index])
        return (float(self.low[index]), float(self.high[index]), float(self.total[index]) / finite) if finite else None

    def middle(self, bucket: int) -> float:
        """The middle step of the filled part of a bucket; extrapolated before the first bucket."""
        start = self.first_step + bucket * self.width
        return (start + min(start + self.width, self.end_step) - 1) / 2

    def columns(self, first: float, last: float, columns: int) -> Floats:
        """Resample the steps from ``first`` to before ``last`` to columns of equal width.

        Each bucket goes to the column of its middle, so that no extreme is lost; columns between two buckets are
        interpolated. NaN in gaps and beyond the ends; the values of a sparse curve are joined.

        Args:
            first: The first step.
            last: The step after the last.
            columns: Number of columns.

        Returns:
            Minimum, maximum and mean of each column, shape ``[3, columns]``.
        """
        found: Floats = np.full((3, max(0, columns)), np.nan)
        step = (last - first) / max(columns, 1)
        if not self.end_step or not found.size or step <= 0:
            return found
        # One bucket beyond either edge, so that the line reaches the edge.
        start, stop = self.span(first - self.width, last + self.width)
        if start >= stop:
            return found
        buckets = np.arange(start, stop)
        if self.is_sparse:  # one value beyond either edge
            valued = np.flatnonzero(self.finite)
            before, after = np.searchsorted(valued, (start, stop))
            buckets = valued[max(before - 1, 0) : after + 1]
        middles = buckets * float(self.width) + (self.first_step + (self.width - 1) / 2)
        if buckets[-1] == len(self.low) - 1:
            middles[-1] = self.middle(len(self.low) - 1)
        position = (middles - first) / step
        column = np.floor(position).astype(np.int64)
        heads = run_starts(column)
        column = column[heads]
        low, high, total, finite = Statistics(*(field[buckets] for field in self.buckets)).merge_from(heads)
        mean = divide_steps(total, finite)
        # Rounding may put a mean outside its bounds: a constant would look like a band.
        mean = np.minimum(np.maximum(mean, low), high)
        begin = max(int(column[0]), 0)
        end = max(min(int(column[-1]) + 1, columns), begin)
        if int(column[-1]) - int(column[0]) < len(column):  # every column has a bucket
            known = slice(begin - int(column[0]), end - int(column[0]))
            found[:, begin:end] = low[known], high[known], mean[known]
            return found
        inside = (column >= 0) & (column < columns)
        points = np.where(inside, column, position[heads] - 0.5)
        for target, values in zip(found, (low, high, mean), strict=True):
            target[:] = np.interp(np.arange(columns), points, values, left=np.nan, right=np.nan)
            target[column[inside]] = values[inside]
        return found

    def span(self, first: float, last: float) -> tuple[int, int]:
        """Indices of the first bucket with a step from ``first`` to before ``last``, and of the one after the last."""
        start = math.floor((max(first, self.first_step) - self.first_step) / self.width)
        stop = math.ceil((min(max(last, self.first_step), self.end_step) - self.first_step) / self.width)
        return start, max(start, stop)

    def widened(self, width: int) -> "RecordedCurve":
        """Merge neighbouring buckets until each has ``width`` steps."""
        if width == self.width or not self.end_step:
            return self
        starts = np.arange(0, len(self.low), width // self.width)
        return self.with_buckets(self.buckets.merge_from(starts), width=width)


def extended_curve(curves: Sequence[RecordedCurve], values: npt.NDArray[np.floating]) -> list[RecordedCurve]:
    """Return the curves with values appended, all with the bucket width that the widest needs.

    Several at once cost little more than one, since small NumPy calls are dominated by their overhead.

    Args:
        curves: At least one, all with the same ``first_step`` and ``end_step``.
        values: Shape ``[curves, n]``, one per step.
    """
    if not values.size:
        return list(curves)
    first, previous_end = curves[0].first_step, curves[0].end_step
    end_step = previous_end + values.shape[1]
    width = max(curve.width for curve in curves)
    while end_step - first > width * CAPACITY:
        width *= 2
    # The first values may complete the incomplete bucket; it is joined with its earlier part below.
    head = (first - previous_end) % width
    starts = np.maximum(np.arange(head - width if head else 0, values.shape[1], width), 0)
    added = statistics(values.astype(np.float64, copy=False), starts)
    longer = []
    for row, curve, *new in zip(values, curves, *added, strict=True):
        old = curve.widened(width).buckets
        if head:
            low, high, total, finite = new
            low[0], high[0] = np.fmin(old.low[-1], low[0]), np.fmax(old.high[-1], high[0])
            total[0] += old.total[-1]
            finite[0] += old.finite[-1]
        kept = len(old.low) - bool(head)
        joined = Statistics(*(np.concatenate((before[:kept], after)) for before, after in zip(old, new, strict=True)))
        known = row[np.isfinite(row)]
        last_value = float(known[-1]) if known.size else curve.last_value
        longer.append(curve.with_buckets(joined, end_step=end_step, width=width, last_value=last_value))
    return longer


def step_times(step_end_times: RecordedCurve) -> tuple[Floats, Floats]:
    """Numbers of steps, rising, and the time after each; extrapolated to the beginning of the first step and the end.

    Args:
        step_end_times: End time of each step; of a bucket only the mean counts.

    Returns:
        Two arrays of one shape; empty if no time is known.
    """
    known = np.flatnonzero(step_end_times.finite)
    starts = step_end_times.first_step + known * step_end_times.width
    steps = (starts + np.minimum(starts + step_end_times.width, step_end_times.end_step) + 1) / 2
    times = np.maximum.accumulate(step_end_times.means[known])
    if times.size:
        seconds = np.diff(times) / np.diff(steps) if len(times) > 1 else np.zeros(1)  # per step
        end = times[-1] + (step_end_times.end_step - steps[-1]) * seconds[-1]
        last = step_end_times.last_value
        times = np.concatenate(([times[0] - steps[0] * seconds[0]], times, [last if last > times[-1] else end]))
        steps = np.concatenate(([0.0], steps, [step_end_times.end_step]))
    return steps, times


def run_starts(values: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    """The index at which each run of equal values begins; needs at least one value."""
    return np.concatenate(([0], np.flatnonzero(values[1:] != values[:-1]) + 1))


def divide_steps(total: Floats, number: npt.NDArray[np.int64]) -> Floats:
    """Divide sums by their number of terms; NaN where that is 0."""
    return total / np.where(number > 0, number, np.nan)


def _latest(means: Floats) -> float:
    known = means[~np.isnan(means)]
    return float(known[-1]) if known.size else math.nan


DeviceCurves = Mapping[str, Mapping[str, RecordedCurve]]
"""Curves of device metrics, by metric and device."""
