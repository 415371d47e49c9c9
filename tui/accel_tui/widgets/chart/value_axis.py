"""A linear value axis whose ticks are on evenly spaced rows.

Every row of the plot is the same part of the axis. Ticks between rows would be drawn at uneven distances, which look
like a logarithmic axis.
"""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

from accel_tui.widgets.chart.axes import Axis, round_up

DIGITS = (1.0, 2.0, 2.5, 5.0)
"""First digits of the distance of two ticks on a linear axis."""

_SHRINK_BELOW = 0.5
_FLAT = 1e-6  # float32 resolution is 1e-7 of a number
_ROOM = 1.9  # length of the axis of a constant, relative to it
_ROUNDING = 1e-6  # rows
_TALL = 6  # rows from which there are at least three ticks
_UNLABELLED = 1.03  # how much longer an axis may be for a tick at an end
_QUARTERS = 1.05  # how much longer an axis may be for shorter labels than those of 2.5


def value_axis(
    low: float,
    high: float,
    bounds: tuple[float | None, float | None] = (None, None),
    previous: Axis | None = None,
    rows: int = 0,
) -> Axis:
    """An axis that includes two extremes.

    It grows immediately, and shrinks only if half of it or more would stay empty.

    Args:
        low: The minimum.
        high: The maximum; NaN if there is none.
        bounds: Values to include.
        previous: The axis until now, of as many rows.
        rows: Rows between the labels at the ends; 0 if only the ends have labels.
    """
    if math.isnan(low) or math.isnan(high):
        low, high = 0.0, 1.0
    elif high - low <= _FLAT * max(abs(low), abs(high)):
        low, high = min(0.0, _ROOM * low), max(0.0, _ROOM * high) or float(low == 0)
    elif 0 < low < high / 2:
        low = 0.0  # to 0, which a falling loss approaches, so that the axis need not follow
    elif low / 2 < high < 0:
        high = 0.0
    low = low if bounds[0] is None else min(low, bounds[0])
    high = high if bounds[1] is None else max(high, bounds[1])
    if previous and previous.low <= low and high <= previous.high <= previous.low + (high - low) / _SHRINK_BELOW:
        return previous
    return Axis(*(ends_on_rows(low, high, rows, DIGITS) if rows else _round_ends(low, high)))


def most_ticks(rows: int) -> int:
    """Maximum number of ticks of an axis with so many rows: none in adjacent rows."""
    return max(2, min(rows // 2 + 1, max(6, rows // 4)))


@lru_cache(maxsize=256)
def ends_on_rows(
    low: float, high: float, rows: int, digits: tuple[float, ...], *, fewest: int = 0, smallest: float = 0.0
) -> tuple[float, float]:
    """The ends of the shortest axis that includes ``low`` to ``high`` with ticks on rows.

    Args:
        low: The minimum.
        high: The maximum, above ``low``.
        rows: Rows from the lower end to the upper one, at least 1.
        digits: Possible first digits of the distance of two ticks.
        fewest: Minimum number of ticks; by default what so many rows need.
        smallest: Minimum distance of two ticks.
    """
    fewest, most = fewest or (3 if rows >= _TALL else 2), most_ticks(rows)
    shortest, ends = math.inf, (low, high)
    closest = max(rows // (most + 1), min(rows, 2))  # fewer rows would mean too many ticks
    for pitch in range(closest, rows // max(fewest - 1, 1) + 1):
        for digit, step in _steps(max((high - low) * pitch / rows, smallest), digits):
            first = math.floor(low * pitch / step + _ROUNDING)  # rows from 0 to the lower end
            last = first + rows
            ticks = last // pitch - -(-first // pitch) + 1
            if last * step / pitch < high - _ROUNDING * step / pitch or not fewest <= ticks <= most:
                continue
            length = rows * step / pitch * (_QUARTERS if digit % 1 else 1)
            length *= (_UNLABELLED if first % pitch else 1) * (_UNLABELLED if last % pitch else 1)
            if length < shortest * (1 - _ROUNDING):
                shortest, ends = length, (_multiple(first, step, pitch), _multiple(last, step, pitch))
            break
    return ends


def _steps(least: float, digits: Sequence[float]) -> Iterator[tuple[float, float]]:
    """Possible distances of ticks, rising, each with its first digit."""
    power = math.floor(math.log10(least)) - 1
    for each in range(power, power + 4):
        for digit in digits:
            step = digit * 10.0**each
            if step >= least * (1 - _ROUNDING):
                yield digit, step


def _multiple(row: int, step: float, pitch: int) -> float:
    """The number on a row, computed like a tick if it is one."""
    return row // pitch * step if row % pitch == 0 else row * step / pitch


def _round_ends(low: float, high: float) -> tuple[float, float]:
    step = round_up((high - low) / 10)
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
