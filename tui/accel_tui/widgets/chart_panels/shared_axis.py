"""Axes of several runs in place of steps: batch sizes of benches, and epochs or time."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from accel_engine.run.history.history import Points
from accel_engine.run.store.buckets import Statistics
from accel_engine.run.store.series_names import BATCH_SIZE
from accel_tui.run_state.curve import Floats, RecordedCurve, divide_steps, run_starts
from accel_tui.run_state.state import RunState
from accel_tui.widgets.chart.chart_view import NOTHING, ChartSeries, X
from accel_tui.widgets.chart.scale import XScale
from accel_tui.widgets.chart_panels.run_panels import scale_of

PER_DOUBLING = 64
"""Ticks from a batch size to its double."""

_FAR = 1e9  # ticks
_DOUBLINGS = (1, 2, 3, 4, 6, 8, 12, 24)
_NEAR = 0.02  # doublings within which a position stands for a measured batch size


@dataclass(frozen=True, slots=True, eq=False)
class BatchAxis:
    """The axis of some benches, whose rows are by batch size instead of by step.

    It is logarithmic, and counts ticks: equal parts of a doubling. A curve by ticks has a value at each measured batch
    size, joined by lines.
    """

    sizes: tuple[RecordedCurve, ...]
    """The batch sizes of each run, as a curve by row."""
    stops: tuple[int, ...]
    """The ticks of all batch sizes, rising."""
    scale: XScale
    """The logarithm of the batch size by ticks."""

    unit = 1 / PER_DOUBLING
    """Doublings per tick."""

    @classmethod
    def of(cls, states: Sequence[RunState], before: "BatchAxis | None" = None) -> "BatchAxis | None":
        """The axis of these runs; ``None`` unless all of them are benches.

        Args:
            states: The runs.
            before: The axis until now, which is returned if it has not changed.
        """
        if not states or not all(state.info and state.info.bench for state in states):
            return None
        sizes = tuple(state.curves.get(BATCH_SIZE, NOTHING) for state in states)
        return cls.by(sizes, before)

    @classmethod
    def by(cls, sizes: tuple[RecordedCurve, ...], before: "BatchAxis | None" = None) -> "BatchAxis":
        """The axis of batch sizes, a curve by row for each run; ``before`` if that has the same curves."""
        if before and len(before.sizes) != len(sizes):
            before = None
        if before and all(new is old for new, old in zip(sizes, before.sizes, strict=True)):
            return before
        measured = sorted({round(size) for curve in sizes for size in curve.means.tolist() if 1 <= size < math.inf})
        ends = np.array([0.0, _FAR])
        # The cursor asks for the quantity after the step that it is at.
        scale = XScale("batch", ends, (ends - 1) / PER_DOUBLING, _DOUBLINGS, _writer(measured))
        return cls(sizes, tuple(dict.fromkeys(map(_tick, measured))), scale)

    @property
    def ticks(self) -> int:
        """Ticks up to the largest batch size, or the double of a single one."""
        single = len(self.stops) < 2
        return (self.stops[-1] if self.stops else 0) + 1 + PER_DOUBLING * single

    @property
    def bounds(self) -> tuple[int, int] | None:
        """The ticks from the smallest batch size on; ``None`` if that is 1."""
        return (self.stops[0], self.ticks) if self.stops and self.stops[0] else None

    def size_at(self, tick: int) -> str:
        """The batch size of a tick, as text."""
        return self.scale.write(tick * self.unit, 1.0)

    def label(self, tick: int) -> str:
        """Label of a tick: ``batch size 64``."""
        return f"batch size {self.size_at(tick)}"

    def place_on_axis(self, run: int, series: ChartSeries, size: float = 1.0) -> ChartSeries:
        """A series of a run by ticks, with a point at each batch size.

        Args:
            run: The run's index.
            series: Its curve is by row.
            size: Values are divided by this.
        """
        curve, points = _by_ticks(series.curve, self.sizes[run], size)
        value = None if series.value is None else series.value / size
        return replace(series, curve=curve, points=points, detail=NOTHING, is_resampled=True, value=value)


def _tick(size: float) -> int:
    return round(math.log2(size) * PER_DOUBLING)


def _writer(measured: Sequence[int]) -> Callable[[float, float], str]:
    """Formats logarithms of batch sizes; those near a measured one as that."""
    logarithms = np.log2(np.array(measured or [1], np.float64))

    def write(value: float, _: float) -> str:
        nearest = int(np.abs(logarithms - value).argmin())
        is_near = bool(measured) and abs(logarithms[nearest] - value) <= _NEAR
        return f"{measured[nearest] if is_near else round(2**value):,}"

    return write


@lru_cache(maxsize=256)
def _by_ticks(curve: RecordedCurve, sizes: RecordedCurve, size: float) -> tuple[RecordedCurve, Points]:
    """A curve by row as one by ticks, and its points; cached, as ended runs are drawn again and again."""
    rows = sorted(  # by batch size, as rows of other programs need not be
        (_tick(batch), value / size)
        for batch, value in zip(sizes.means.tolist(), curve.means.tolist(), strict=False)
        if 1 <= batch < math.inf and math.isfinite(value)
    )
    if not rows:
        return NOTHING, ()
    ticks, values = (np.array(column) for column in zip(*rows, strict=True))
    count = int(ticks[-1]) + 1
    known: Floats = np.full(count, math.nan)
    known[ticks] = values
    there = np.isfinite(known)
    placed = RecordedCurve(
        count, 1, float(values[-1]), known, known, np.where(there, known, 0.0), there.astype(np.int64)
    )
    return placed, tuple(rows)


TICKS = 4096
"""Maximum number of ticks of the longest run."""


@dataclass(frozen=True, slots=True, eq=False)
class SharedAxis:
    """A shared axis of epochs or time for runs whose steps differ in batch size or speed.

    It counts ticks: equal parts of an epoch or a second, some thousands for the longest run. A curve by ticks has the
    values measured then; a step of many ticks repeats its value.
    """

    x: X
    """The quantity."""
    states: tuple[RunState, ...]
    """The runs."""
    scales: tuple[XScale, ...]
    """The quantity by steps of each run."""
    unit: float
    """Epochs or seconds per tick."""
    scale: XScale
    """The quantity by ticks."""

    @classmethod
    def of(cls, states: Sequence[RunState], x: X, before: "SharedAxis | None") -> "SharedAxis | None":
        """The axis of these runs; ``None`` if it counts steps.

        Args:
            states: The runs.
            x: The quantity.
            before: The axis until now, whose scales of ended runs are reused.
        """
        before = before if before and before.x == x else None
        known = dict(zip(map(id, before.states), before.scales, strict=True)) if before else {}
        scales = [scale for state in states if (scale := known.get(id(state)) or scale_of(state, x))]
        if not scales:
            return None
        longest = max(_last(scale, state.step) for scale, state in zip(scales, states, strict=True))
        power = 10.0 ** math.floor(math.log10(max(longest, 1e-3) / TICKS))
        unit = next(digit * power for digit in (1, 2, 5, 10) if digit * power * TICKS >= longest)
        if before and before.unit == unit:
            scale = before.scale
        else:
            ends = np.array([0.0, _FAR])
            scale = replace(scales[0], steps=ends, values=ends * unit)
        return cls(x, tuple(states), tuple(scales), unit, scale)

    @property
    def ticks(self) -> int:
        """Ticks of the longest run."""
        pairs = zip(self.scales, self.states, strict=True)
        return math.ceil(max(_last(scale, state.step) for scale, state in pairs) / self.unit)

    def label(self, tick: int) -> str:
        """Label of a tick: ``epoch 2.5``, ``0:12``."""
        label = self.scale.write(round(tick * self.unit, 2), 1.0)
        return f"epoch {label}" if self.x == "epoch" else label

    def place_on_axis(self, run: int, series: ChartSeries) -> ChartSeries:
        """A series of a run by ticks."""
        scale = self.scales[run]
        positions = scale.at(np.array([step + 1.0 for step, _ in series.points])) / self.unit
        points = tuple(
            (float(position), value)
            for position, (_, value) in zip(positions, series.points, strict=True)
            if not math.isnan(position)
        )
        curve = _curve_by_ticks(series.curve, scale, self.unit)
        return replace(series, curve=curve, points=points, detail=NOTHING, is_resampled=True)


def _last(scale: XScale, steps: int) -> float:
    """The last known quantity within ``steps`` steps."""
    known = scale.steps[scale.steps <= steps]
    at = scale.at(np.array([float(steps), *known[-1:]]))
    return float(np.nanmax(at)) if not np.isnan(at).all() else 0.0


@lru_cache(maxsize=64)
def _curve_by_ticks(curve: RecordedCurve, scale: XScale, unit: float) -> RecordedCurve:
    """A curve by ticks; cached for ended runs."""
    edges = np.minimum(curve.first_step + np.arange(len(curve.low) + 1) * curve.width, curve.end_step)
    at = scale.at(edges.astype(np.float64)) / unit
    known = ~np.isnan(at[1:] + at[:-1])
    if not known.any():
        return RecordedCurve()
    begins, ends = at[:-1][known], at[1:][known]
    low, high, mean = curve.low[known], curve.high[known], curve.means[known]
    count = max(1, math.ceil(ends[-1]))
    # Each tick has the bucket of its middle, ...
    position = np.clip(np.searchsorted(ends, np.arange(count) + 0.5), 0, len(ends) - 1)
    lows, highs, means = low[position], high[position], mean[position]
    # ... and ticks in which buckets end merge all of them, so that no extreme is lost.
    tick = np.minimum(((begins + ends) / 2).astype(np.int64), count - 1)
    heads = run_starts(tick)
    total, finite = np.where(curve.finite > 0, curve.total, 0)[known], curve.finite[known]
    merged = Statistics(low, high, total, finite).merge_from(heads)
    lows[tick[heads]], highs[tick[heads]], means[tick[heads]] = (
        merged.low,
        merged.high,
        divide_steps(merged.total, merged.finite),
    )
    there = ~np.isnan(means)
    return RecordedCurve(count, 1, curve.last_value, lows, highs, np.where(there, means, 0.0), there.astype(np.int64))
