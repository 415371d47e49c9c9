"""Runs on one axis of epochs or of time: with other batch sizes and speeds, their steps are not of one kind.

The axis counts ticks, equal parts of an epoch or of a second, some thousand of them for the longest run. A curve by
ticks says what its run measured then; of a step that took many ticks, all of them say the same.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from accel_tui.run.curve import Curve, divide
from accel_tui.run.state import RunState
from accel_tui.widgets.chart.chart_options import X
from accel_tui.widgets.chart.scale import Scale
from accel_tui.widgets.chart.series import Series
from accel_tui.widgets.charts.run_panels import scale_of

TICKS = 4096
"""The most ticks of the longest run."""

_FAR = 1e9  # ticks


@dataclass(frozen=True, slots=True, eq=False)
class SharedAxis:
    """What the steps of some runs are laid out by.

    Attributes:
        x: What it counts.
        states: The runs.
        scales: What each run's steps are on it.
        unit: How much a tick is, in epochs or in seconds.
        scale: What ticks are.
    """

    x: X
    states: tuple[RunState, ...]
    scales: tuple[Scale, ...]
    unit: float
    scale: Scale

    @classmethod
    def of(cls, states: Sequence[RunState], x: X, before: "SharedAxis | None") -> "SharedAxis | None":
        """The axis that has room for these runs; ``None`` where their steps are it.

        Args:
            states: The runs.
            x: What it is to count.
            before: The axis until now: what runs that have ended are on it is not worked out again.
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
        """How many ticks the longest run takes."""
        pairs = zip(self.scales, self.states, strict=True)
        return math.ceil(max(_last(scale, state.step) for scale, state in pairs) / self.unit)

    def words(self, tick: int) -> str:
        """What a tick is called: ``epoch 2.5``, ``0:12``."""
        words = self.scale.write(round(tick * self.unit, 2), 1.0)
        return f"epoch {words}" if self.x == "epoch" else words

    def laid(self, run: int, series: Series) -> Series:
        """What a run has of a series, by ticks."""
        scale = self.scales[run]
        places = scale.at(np.array([step + 1.0 for step, _ in series.points])) / self.unit
        points = tuple(
            (float(place), value)
            for place, (_, value) in zip(places, series.points, strict=True)
            if not math.isnan(place)
        )
        return Series(series.name, _by_ticks(series.curve, scale, self.unit), points, series.style, is_resampled=True)


def _last(scale: Scale, steps: int) -> float:
    """What the last of so many steps is on a scale, as far as that is known."""
    known = scale.steps[scale.steps <= steps]
    at = scale.at(np.array([float(steps), *known[-1:]]))
    return float(np.nanmax(at)) if not np.isnan(at).all() else 0.0


@lru_cache(maxsize=64)
def _by_ticks(curve: Curve, scale: Scale, unit: float) -> Curve:
    """A curve by ticks; a run that has ended has the same curve every time."""
    edges = np.minimum(curve.first + np.arange(len(curve.low) + 1) * curve.width, curve.count)
    at = scale.at(edges.astype(np.float64)) / unit
    known = ~np.isnan(at[1:] + at[:-1])
    if not known.any():
        return Curve()
    begins, ends = at[:-1][known], at[1:][known]
    low, high, mean = curve.low[known], curve.high[known], curve.means[known]
    count = max(1, math.ceil(ends[-1]))
    # Each tick is of the bucket that was going on in its middle, ...
    place = np.clip(np.searchsorted(ends, np.arange(count) + 0.5), 0, len(ends) - 1)
    lows, highs, means = low[place], high[place], mean[place]
    # ... and those in which buckets ended are of all of these: no extreme is lost.
    tick = np.minimum(((begins + ends) / 2).astype(np.int64), count - 1)
    heads = np.concatenate(([0], (tick[1:] != tick[:-1]).nonzero()[0] + 1))
    total, finite = np.where(curve.finite > 0, curve.total, 0)[known], curve.finite[known]
    lows[tick[heads]] = np.fmin.reduceat(low, heads)
    highs[tick[heads]] = np.fmax.reduceat(high, heads)
    means[tick[heads]] = divide(np.add.reduceat(total, heads), np.add.reduceat(finite, heads))
    there = ~np.isnan(means)
    return Curve(count, 1, curve.last, lows, highs, np.where(there, means, 0.0), there.astype(np.int64))
