"""An axis of batch sizes for stored benches, whose rows are by batch size instead of by step.

It is logarithmic, and counts ticks: equal parts of a doubling. A curve by ticks has a value at each measured batch
size, joined by lines.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from accel_engine.run.history.history import Points
from accel_engine.run.store.series_names import BATCH_SIZE
from accel_tui.run_state.curve import Floats, RecordedCurve
from accel_tui.run_state.state import RunState
from accel_tui.widgets.chart.chart_view import NOTHING, ChartSeries
from accel_tui.widgets.chart.scale import XScale

PER_DOUBLING = 64
"""Ticks from a batch size to its double."""

_FAR = 1e9  # ticks
_DOUBLINGS = (1, 2, 3, 4, 6, 8, 12, 24)
_NEAR = 0.02  # doublings within which a position is that of a measured batch size


@dataclass(frozen=True, slots=True, eq=False)
class BatchAxis:
    """The axis of some benches.

    Attributes:
        sizes: The batch sizes of each run, as a curve by row.
        stops: The ticks of all batch sizes, rising.
        scale: The logarithm of the batch size by ticks.
    """

    sizes: tuple[RecordedCurve, ...]
    stops: tuple[int, ...]
    scale: XScale

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
