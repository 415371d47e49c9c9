"""The value axis of a chart: the range of its visible values, without outliers if clipped, and round ends.

Every row of the plot is the same part of a linear axis. Ticks between rows would be drawn at uneven distances, which
look like a logarithmic axis.
"""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

from accel_tui.widgets.chart.axes import NARROW, Axis, LogAxis, round_down, round_up
from accel_tui.widgets.chart.chart_view import ChartOptions, ChartSeries
from accel_tui.widgets.chart.visible_values import asks_for_log, visible_values_of

Bounds = tuple[float | None, float | None]
"""Values that an axis includes."""

_DIGITS = (1.0, 2.0, 2.5, 5.0)  # first digits of the distance of two ticks
_DECADES = (1.0, 2.0, 3.0, 5.0)  # the same in powers of ten, on a logarithmic axis
_SHRINK_BELOW = 0.5
_FLAT = 1e-6  # float32 resolution is 1e-7 of a number
_ROOM = 1.9  # length of the axis of a constant, relative to it
_ROUNDING = 1e-6  # rows
_TALL = 6  # rows from which there are at least three ticks
_UNLABELLED = 1.03  # how much longer an axis may be for a tick at an end
_QUARTERS = 1.05  # how much longer an axis may be for shorter labels than those of 2.5
_LONG = 10.0  # ratio of the ends from which powers of ten can be on rows


def axis_of(
    series: tuple[ChartSeries, ...],
    window: tuple[int, int] | None,
    options: ChartOptions,
    bounds: Bounds = (None, None),
    previous: Axis | None = None,
    rows: int = 0,
    limits: Bounds = (None, None),
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
    """
    parts = list(visible_values_of(series, *(window or (0, math.inf))))
    is_free = bounds[0] is None and limits[1] is None
    log = is_free and asks_for_log(parts, previous) if options.log is None else options.log
    if log:
        parts = [positive for part in parts if (positive := part.positive)]
    ends = [part.fence(log=log) if options.clip else part.ends for part in parts]
    low = min((low for low, _ in ends), default=math.nan)
    high = max((high for _, high in ends), default=math.nan)
    if log:
        return log_axis(low, high, bounds, previous, rows)
    return value_axis(low, high, bounds, None if isinstance(previous, LogAxis) else previous, rows, limits)


def value_axis(
    low: float,
    high: float,
    bounds: Bounds = (None, None),
    previous: Axis | None = None,
    rows: int = 0,
    limits: Bounds = (None, None),
) -> Axis:
    """An axis that includes two extremes.

    It grows immediately, and shrinks only if half of it or more would stay empty.

    Args:
        low: The minimum.
        high: The maximum; NaN if there is none.
        bounds: Values to include.
        previous: The axis until now, of as many rows.
        rows: Rows between the labels at the ends; 0 if only the ends have labels.
        limits: Where the axis ends at the latest, unless an extreme is beyond.
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
    low = low if bounds[0] is None else min(low, bounds[0])
    high = high if bounds[1] is None else max(high, bounds[1])
    most = previous.low + (high - low) / _SHRINK_BELOW if previous else high
    if highest is not None and high <= highest:
        most = min(most, highest)  # the axis until now may have had no limits
    if previous and previous.low <= low and high <= previous.high <= most:
        return previous
    ends = ends_on_rows(low, high, rows, _DIGITS) if rows else _round_ends(low, high)
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
    return lowest, highest


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
