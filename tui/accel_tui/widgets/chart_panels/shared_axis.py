"""A shared axis of epochs or time for runs whose steps differ in batch size or speed.

The axis counts ticks, equal parts of an epoch or a second, some thousands for the longest run. A curve by ticks has the
values measured then; a step of many ticks repeats its value.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from accel_engine.run.store.buckets import Statistics
from accel_tui.run_state.curve import RecordedCurve, divide_steps
from accel_tui.run_state.state import RunState
from accel_tui.widgets.chart.chart_view import NOTHING, ChartSeries, X
from accel_tui.widgets.chart.scale import XScale
from accel_tui.widgets.chart_panels.run_panels import scale_of

TICKS = 4096
"""Maximum number of ticks of the longest run."""

_FAR = 1e9  # ticks


@dataclass(frozen=True, slots=True, eq=False)
class SharedAxis:
    """A shared axis of several runs.

    Attributes:
        x: The quantity.
        states: The runs.
        scales: The quantity by steps of each run.
        unit: Epochs or seconds per tick.
        scale: The quantity by ticks.
    """

    x: X
    states: tuple[RunState, ...]
    scales: tuple[XScale, ...]
    unit: float
    scale: XScale

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
        curve = _by_ticks(series.curve, scale, self.unit)
        return replace(series, curve=curve, points=points, detail=NOTHING, is_resampled=True)


def _last(scale: XScale, steps: int) -> float:
    """The last known quantity within ``steps`` steps."""
    known = scale.steps[scale.steps <= steps]
    at = scale.at(np.array([float(steps), *known[-1:]]))
    return float(np.nanmax(at)) if not np.isnan(at).all() else 0.0


@lru_cache(maxsize=64)
def _by_ticks(curve: RecordedCurve, scale: XScale, unit: float) -> RecordedCurve:
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
    heads = np.concatenate(([0], (tick[1:] != tick[:-1]).nonzero()[0] + 1))
    total, finite = np.where(curve.finite > 0, curve.total, 0)[known], curve.finite[known]
    merged = Statistics(low, high, total, finite).merge_from(heads)
    lows[tick[heads]], highs[tick[heads]], means[tick[heads]] = (
        merged.low,
        merged.high,
        divide_steps(merged.total, merged.finite),
    )
    there = ~np.isnan(means)
    return RecordedCurve(count, 1, curve.last_value, lows, highs, np.where(there, means, 0.0), there.astype(np.int64))
