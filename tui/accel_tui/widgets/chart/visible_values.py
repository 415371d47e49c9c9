"""The visible values of a chart: their range, outliers among them, and whether they ask for a logarithmic axis."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from accel_tui.run_state.curve import Floats
from accel_tui.widgets.chart.axes import Axis, LogAxis
from accel_tui.widgets.chart.chart_view import ChartSeries

_QUANTILE = 0.05  # quantile on either side, a common choice
_ASKS_FOR_LOG = 30.0  # ratio of the quantiles from which an axis is logarithmic if nobody has chosen
_STAYS_LOG = 10.0  # the same for an axis that is logarithmic, so that it does not turn back and forth
_WORTH_IT = 0.8  # share of the range that the rest is drawn in at most, if outliers are hidden
_SAMPLED = 512  # buckets whose quantiles are those of all
_FEWEST_STEPS = 19  # values of a curve after the first, from which on some may be outliers
_FEWEST_POINTS = 4  # the same of points, of which the first is often one
_MARGIN = 0.5  # share of the range between the quantiles: a steadily falling curve is not clipped
_POINT_MARGIN = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class VisibleValues:
    """The visible values of a curve, or the visible points of a series.

    Attributes:
        lows: Minimum of each bucket, at least one, without NaN.
        highs: Maximum of each bucket; the same array if each has one value.
        quantiles: The lower quantile of the minima and the upper one of the maxima.
        ends: Minimum and maximum.
        are_points: Whether these are points, such as validations, of which few are known.
    """

    lows: Floats
    highs: Floats
    quantiles: tuple[float, float]
    ends: tuple[float, float]
    are_points: bool

    @classmethod
    def of(cls, lows: Floats, highs: Floats, *, are_points: bool = False) -> "VisibleValues":
        """The part with these values; of very few, the quantiles are the extremes."""
        is_single = lows is highs
        # Of buckets with several values each, some of the buckets tell enough.
        stride = 1 if is_single else max(1, len(lows) // _SAMPLED)
        some_lows, some_highs = lows[::stride], highs[::stride]
        last = len(some_lows) - 1
        is_enough = last >= (_FEWEST_POINTS if are_points else _FEWEST_STEPS)
        beside = max(1, round(_QUANTILE * last)) if is_enough else 0
        below = np.partition(some_lows, (beside, last - beside) if is_single else beside)
        above = below if is_single else np.partition(some_highs, last - beside)
        quantiles = float(below[beside]), float(above[last - beside])
        return cls(lows, highs, quantiles, (float(lows.min()), float(highs.max())), are_points)

    @property
    def positive(self) -> "VisibleValues | None":
        """Only the positive values; ``None`` if there is none."""
        if self.ends[0] > 0:
            return self
        # Of a bucket with both, only the maximum certainly has a logarithm.
        known = self.highs > 0
        lows, highs = self.lows[known], self.highs[known]
        if not highs.size:
            return None
        return VisibleValues.of(np.where(lows > 0, lows, highs), highs, are_points=self.are_points)

    def fence(self, *, log: bool = False) -> tuple[float, float]:
        """Minimum and maximum without outliers.

        Outliers are beyond the quantiles by more than half of their distance; points by more than all of it, as the
        latest of few that rise or fall is none. They stay where the range would hardly be shorter without them.

        Args:
            log: Whether distances are logarithmic; all values must be positive then.
        """
        forth, back = (math.log, math.exp) if log else (float, float)
        low, high = map(forth, self.quantiles)
        margin = (_POINT_MARGIN if self.are_points else _MARGIN) * (high - low)
        bottom, top = max(self.ends[0], back(low - margin)), min(self.ends[1], back(high + margin))
        is_shorter = forth(top) - forth(bottom) < _WORTH_IT * (forth(self.ends[1]) - forth(self.ends[0]))
        return (bottom, top) if is_shorter else self.ends


def visible_values_of(series: tuple[ChartSeries, ...], first: float, last: float) -> Iterator[VisibleValues]:
    """The curves in a range of steps, and, as they are fewer, the points apart."""
    for each in series:
        curve = each.curve_in(first, last)
        span = slice(*curve.span(first, last))
        known: slice | npt.NDArray[np.bool_] = curve.finite[span] > 0
        if not curve.gaps:
            known = slice(None)  # which is a view
        lows = curve.low[span][known]
        if lows.size:
            yield VisibleValues.of(lows, lows if curve.width == 1 else curve.high[span][known])
        if points := [value for _, value in each.within(first, last) if math.isfinite(value)]:
            values = np.array(points, np.float64)
            yield VisibleValues.of(values, values, are_points=True)


def asks_for_log(parts: Sequence[VisibleValues], previous: Axis | None) -> bool:
    """Whether most values are positive and of different magnitudes; an axis that is logarithmic stays so for longer."""
    low = min((part.quantiles[0] for part in parts), default=0.0)
    high = max((part.quantiles[1] for part in parts), default=0.0)
    return low > 0 and high / low >= (_STAYS_LOG if isinstance(previous, LogAxis) else _ASKS_FOR_LOG)
