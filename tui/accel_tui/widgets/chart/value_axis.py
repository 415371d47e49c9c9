"""The value axis of a chart: the range of its visible values, without outliers if clipped, and round ends.

Every row of the plot is the same part of a linear axis. Ticks between rows would be drawn at uneven distances, which
look like a logarithmic axis.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from accel_tui.run_state.curve import Floats
from accel_tui.widgets.chart.axes import NARROW, Axis, LogAxis, NinesAxis, WholeAxis, round_down, round_up
from accel_tui.widgets.chart.chart_view import ChartOptions, ChartSeries

_QUANTILE = 0.05  # quantile on either side, a common choice
_ASKS_FOR_LOG = 30.0  # ratio of the quantiles from which an axis is logarithmic if nobody has chosen
_STAYS_LOG = 10.0  # the same for an axis that is logarithmic, so that it does not turn back and forth
_WORTH_IT = 0.8  # share of the range that the rest is drawn in at most, if outliers are hidden
_SAMPLED = 512  # buckets whose quantiles are near enough to the quantiles of all
_FEWEST_STEPS = 19  # values of a curve after the first, from which on some may be outliers
_FEWEST_POINTS = 4  # the same of points, of which the first is often one
_MARGIN = 0.5  # share of the range between the quantiles: a steadily falling curve is not clipped
_POINT_MARGIN = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class VisibleValues:
    """The visible values of a curve, or the visible points of a series."""

    lows: Floats
    """Minimum of each bucket, at least one, without NaN."""
    highs: Floats
    """Maximum of each bucket; the same array if each has one value."""
    quantiles: tuple[float, float]
    """The lower quantile of the minima and the upper one of the maxima."""
    ends: tuple[float, float]
    """Minimum and maximum."""
    are_points: bool
    """Whether these are points, such as validations, of which few are known."""

    @classmethod
    def of(cls, lows: Floats, highs: Floats, *, are_points: bool = False) -> "VisibleValues":
        """The values with their quantiles and ends; of few values, the quantiles are the extremes."""
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

    @property
    def distances(self) -> "VisibleValues":
        """The distances between the values and 1."""
        lows = 1 - self.highs
        return VisibleValues.of(lows, lows if self.lows is self.highs else 1 - self.lows, are_points=self.are_points)

    def fence(self, *, log: bool = False) -> tuple[float, float]:
        """Minimum and maximum without outliers.

        Outliers are beyond the quantiles by more than half of their distance; points by more than all of it, so that
        the latest of a few that rise or fall is not an outlier. Outliers are kept where the range would hardly be
        shorter without them.

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
    """The values of the curves in a range of steps, and separately of the points, which are fewer."""
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


Bounds = tuple[float | None, float | None]
"""The lowest and the highest value that an axis includes, or at which it ends; ``None`` for no bound."""

_DIGITS = (1.0, 2.0, 2.5, 5.0)  # first digits of the distance of two ticks
_WHOLE_DIGITS = (1.0, 2.0, 5.0)  # the same of whole numbers
_DECADES = (1.0, 2.0, 3.0, 5.0)  # the same in powers of ten, on a logarithmic axis
_SHRINK_BELOW = 0.5
_FLAT = 1e-6  # float32 resolution is 1e-7 of a number
_ROOM = 1.9  # length of the axis of a constant, relative to it
_ROUNDING = 1e-6  # rows
_TALL = 6  # rows from which there are at least three ticks
_UNLABELLED = 1.03  # how much longer an axis may be for a tick at an end
_QUARTERS = 1.05  # how much longer an axis may be for shorter labels than multiples of 2.5
_PARTS = (2, 5)  # into which limits are divided at round numbers
_LONG = 10.0  # ratio of the ends from which powers of ten can be on rows


def axis_of(
    series: tuple[ChartSeries, ...],
    window: tuple[int, int] | None,
    options: ChartOptions,
    bounds: Bounds = (None, None),
    previous: Axis | None = None,
    rows: int = 0,
    limits: Bounds = (None, None),
    *,
    whole: bool = False,
) -> Axis:
    """The value axis of a chart: of all visible values, except those that the options leave out.

    Args:
        series: The series.
        window: First visible step, and the step after the last; ``None`` for all.
        options: How curves are drawn.
        bounds: Values to include.
        previous: The axis until now, with the same options and as many rows.
        rows: Rows between the labels at the ends; 0 if only the ends have labels.
        limits: The lowest and highest value that there can be, if known.
        whole: Whether all values are whole numbers, so that ticks are.
    """
    parts = list(visible_values_of(series, *(window or (0, math.inf))))
    is_free = bounds[0] is None and limits[1] is None
    log = is_free and asks_for_log(parts, previous) if options.log is None else options.log
    has_nines = log and limits == (0.0, 1.0)
    if has_nines:
        parts = [part.distances for part in parts]
    if log:
        parts = [positive for part in parts if (positive := part.positive)]
    ends = [part.fence(log=log) if options.clip else part.ends for part in parts]
    low = min((low for low, _ in ends), default=math.nan)
    high = max((high for _, high in ends), default=math.nan)
    if has_nines:
        distances = log_axis(
            low, high, previous=previous.distances if isinstance(previous, NinesAxis) else None, rows=rows
        )
        return NinesAxis(1 - distances.high, 1.0, distances.low)
    if log:
        return log_axis(low, high, bounds, previous, rows)
    before = None if isinstance(previous, LogAxis) else previous
    return value_axis(low, high, bounds, before, rows, limits, whole=whole)


def value_axis(
    low: float,
    high: float,
    bounds: Bounds = (None, None),
    previous: Axis | None = None,
    rows: int = 0,
    limits: Bounds = (None, None),
    *,
    whole: bool = False,
) -> Axis:
    """An axis that includes two extremes.

    It grows immediately, and shrinks only if half of it or more would stay empty.

    Args:
        low: The minimum.
        high: The maximum; NaN if there is none.
        bounds: Values to include.
        previous: The axis until now, of as many rows.
        rows: Rows between the labels at the ends; 0 if only the ends have labels.
        limits: Where the axis ends at the latest, unless an extreme is beyond; a row later for ticks in between.
        whole: Whether ticks are whole numbers.
    """
    least, (lowest, highest) = low, limits
    if math.isnan(low) or math.isnan(high):
        low, high = 0.0, 1.0
    elif high - low <= _FLAT * max(abs(low), abs(high)):
        room = _ROOM * high if highest is None or high > highest else min(_ROOM * high, highest)
        low, high = min(0.0, _ROOM * low), max(0.0, room) or float(low == 0)
    elif 0 < low < high / 2:
        low = 0.0  # to 0, which a falling loss approaches, so that the axis need not follow
    elif low / 2 < high < 0:
        high = 0.0
    if bounds[0] is not None:
        low = least = min(low, bounds[0])
    high = high if bounds[1] is None else max(high, bounds[1])
    most = previous.low + (high - low) / _SHRINK_BELOW if previous else high
    if highest is not None and high <= highest:
        most = min(most, highest)  # the axis until now may have had no limits
    if previous and previous.low <= low and high <= previous.high <= most:
        return previous
    digits, min_step = (_WHOLE_DIGITS, WholeAxis.least_step) if whole else (_DIGITS, 0.0)
    ends = ends_on_rows(low, high, rows, digits, min_step=min_step) if rows else _round_ends(low, high)
    if whole:
        return WholeAxis(*ends)
    if lowest is not None and highest is not None and lowest <= low and high <= highest < ends[1]:
        ends = _ends_at_limits(low, least, lowest, highest, rows)
    return Axis(*ends)


def log_axis(
    low: float,
    high: float,
    bounds: Bounds = (None, None),
    previous: Axis | None = None,
    rows: int = 0,
) -> LogAxis:
    """An axis that includes two positive extremes.

    Like :func:`value_axis` it grows immediately and shrinks rarely. Powers of ten
    are on evenly spaced rows.

    Args:
        low: The minimum positive value.
        high: The maximum; NaN if there is none.
        bounds: Values to include; ignored if not positive.
        previous: The axis until now, of as many rows.
        rows: Rows between the labels at the ends; 0 if only the ends have labels.
    """
    if math.isnan(low) or math.isnan(high) or low <= 0:
        low, high = 0.1, 1.0
    low = min(low, bounds[0]) if bounds[0] and bounds[0] > 0 else low
    high = max(high, bounds[1]) if bounds[1] and bounds[1] > 0 else high
    if high < NARROW * low:
        # At most twice as far down, even for rounding: 0 has no place.
        linear = value_axis(low, high)
        low, high = max(linear.low, low / NARROW), max(linear.high, low * 1.01)
    elif rows and high >= _LONG * low:
        min_ticks = 1 if high < _LONG**2 * low else 2 + (rows >= 2 * _TALL)  # powers of ten; beside one are digits
        decades = ends_on_rows(math.log10(low), math.log10(high), rows, _DECADES, min_ticks=min_ticks, min_step=1.0)
        low, high = min(low, 10 ** decades[0]), max(high, 10 ** decades[1])
    else:
        low, high = round_down(low), round_up(high)
    if (
        isinstance(previous, LogAxis)
        and previous.low <= low
        and high <= previous.high
        and math.log(previous.high / previous.low) * _SHRINK_BELOW <= math.log(high / low)
    ):
        return previous
    return LogAxis(low, high)


def max_ticks(rows: int) -> int:
    """Maximum number of ticks of an axis of ``rows`` rows: none in adjacent rows."""
    return max(2, min(rows // 2 + 1, max(6, rows // 4)))


@lru_cache(maxsize=256)
def ends_on_rows(
    low: float, high: float, rows: int, digits: tuple[float, ...], *, min_ticks: int = 0, min_step: float = 0.0
) -> tuple[float, float]:
    """The ends of the shortest axis that includes ``low`` to ``high`` with ticks on rows.

    Args:
        low: The minimum.
        high: The maximum, above ``low``.
        rows: Rows from the lower end to the upper one, at least 1.
        digits: Possible first digits of the distance of two ticks.
        min_ticks: Minimum number of ticks; by default 3, or 2 on a short axis.
        min_step: Minimum distance of two ticks.
    """
    min_ticks, limit = min_ticks or (3 if rows >= _TALL else 2), max_ticks(rows)
    shortest, ends = math.inf, (low, high)
    closest = max(rows // (limit + 1), min(rows, 2))  # fewer rows would mean too many ticks
    for rows_per_tick in range(closest, rows // max(min_ticks - 1, 1) + 1):
        for digit, step in _steps(max((high - low) * rows_per_tick / rows, min_step), digits):
            first = math.floor(low * rows_per_tick / step + _ROUNDING)  # rows from 0 to the lower end
            last = first + rows
            ticks = last // rows_per_tick - -(-first // rows_per_tick) + 1
            if last * step / rows_per_tick < high - _ROUNDING * step / rows_per_tick or not min_ticks <= ticks <= limit:
                continue
            length = rows * step / rows_per_tick * (_QUARTERS if digit % 1 else 1)
            length *= (_UNLABELLED if first % rows_per_tick else 1) * (_UNLABELLED if last % rows_per_tick else 1)
            if length < shortest * (1 - _ROUNDING):
                shortest, ends = length, (_multiple(first, step, rows_per_tick), _multiple(last, step, rows_per_tick))
            break
    return ends


@lru_cache(maxsize=256)
def _ends_at_limits(low: float, least: float, lowest: float, highest: float, rows: int) -> tuple[float, float]:
    """The ends of an axis up to the highest value, from 0 or the least value on if there are ticks on rows for it."""
    for bottom in filter(highest.__gt__, (low, least)):
        lengths = [
            step * rows / rows_per_tick
            for rows_per_tick in range(1, rows)
            for _, step in _steps((highest - bottom) * rows_per_tick / rows, _DIGITS)
            if 2 < rows // rows_per_tick + 1 <= max_ticks(rows) and math.isclose(highest / step, round(highest / step))
        ]
        if lengths and highest - min(lengths) >= lowest - _ROUNDING:
            return highest - min(lengths), highest
    has_ticks = rows < _TALL or any(rows % parts == 0 for parts in _PARTS)
    return lowest, highest if has_ticks else highest + (highest - lowest) / (rows - 1)  # an empty row, for more ticks


def _steps(minimum: float, digits: Sequence[float]) -> Iterator[tuple[float, float]]:
    """Possible distances of ticks, rising, each with its first digit."""
    power = math.floor(math.log10(minimum)) - 1
    for each in range(power, power + 4):
        for digit in digits:
            step = digit * 10.0**each
            if step >= minimum * (1 - _ROUNDING):
                yield digit, step


def _multiple(row: int, step: float, rows_per_tick: int) -> float:
    """The number on a row, computed like a tick if it is one."""
    return row // rows_per_tick * step if row % rows_per_tick == 0 else row * step / rows_per_tick


def _round_ends(low: float, high: float) -> tuple[float, float]:
    step = round_up((high - low) / 10)
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
