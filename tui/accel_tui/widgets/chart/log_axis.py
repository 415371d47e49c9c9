"""A logarithmic value axis."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from accel_tui.run_state.curve import Curve
from accel_tui.widgets.chart.axes import Axis, Floats, labels
from accel_tui.widgets.chart.value_axis import ends_on_rows, value_axis

_DIGITS = ((1, 2, 3, 4, 5, 6, 7, 8, 9), (1, 2, 5), (1, 3), (1,))
_NARROW = 2.0  # ratio of the ends below which evenly spaced labels are rounder
_MIN_TICKS = 3
_SHRINK_BELOW = 0.5
_DECADES = (1.0, 2.0, 3.0, 5.0)
_LONG = 10.0  # ratio of the ends from which powers of ten can be on rows


@dataclass(frozen=True, slots=True)
class LogAxis(Axis):
    """A logarithmic range of positive numbers."""

    def fraction(self, values: Floats) -> Floats:
        """Positions of numbers: 0 at the beginning, 1 at the end; NaN for numbers that are not positive."""
        logs: Floats = np.log(values, out=np.full(np.shape(values), np.nan), where=np.asarray(values) > 0)
        return (logs - math.log(self.low)) / (math.log(self.high) - math.log(self.low))

    def ticks(self, max_count: int) -> list[float]:
        """Round numbers on the axis, at most ``max_count``: powers of ten, and digits in between if they fit."""
        if max_count < 1:
            return []
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        for digits in _DIGITS:
            found = [digit * 10.0**power for power in range(first, last + 1) for digit in digits]
            found = [tick for tick in found if self.low * (1 - 1e-9) <= tick <= self.high * (1 + 1e-9)]
            if digits is _DIGITS[0] and len(found) < _MIN_TICKS:
                return Axis.ticks(self, max_count)
            if len(found) <= max_count:
                return found
        return found[:: math.ceil(len(found) / max_count)]

    def ticks_on_rows(self, rows: int, max_count: int) -> list[tuple[float, int]]:
        """Powers of ten on evenly spaced rows if possible, and digits on the nearest rows."""
        ticks = self.ticks(max_count)
        if not self._are_on_rows([tick for tick in ticks if _is_power(tick)], rows):
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            for stride in range(2, last - first + 1):
                powers = [10.0**power for power in range(first, last + 1) if power % stride == 0]
                if 2 <= len(powers) <= max_count and self._are_on_rows(powers, rows):
                    ticks = powers
                    break
        found = dict(zip(self._rows(reversed(ticks), rows), reversed(ticks), strict=True))  # at most one per row
        return [(tick, round(row)) for row, tick in found.items()][::-1]

    def _rows(self, ticks: Iterable[float], rows: int) -> list[float]:
        positions: list[float] = np.rint((1 - self.fraction(np.array([*ticks]))) * rows).tolist()
        return positions

    def _are_on_rows(self, ticks: Sequence[float], rows: int) -> bool:
        exact = (1 - self.fraction(np.array(ticks))) * rows
        return bool(np.allclose(exact, np.rint(exact), rtol=0, atol=1e-3))

    def labels(self, ticks: Sequence[float]) -> list[str]:
        """Each number as short as possible."""
        evenly = len(ticks) > 1 and ticks[-1] < _NARROW * ticks[0]
        return labels(ticks) if evenly else [text for tick in ticks for text in labels([tick])]


def log_axis(
    low: float,
    high: float,
    bounds: tuple[float | None, float | None] = (None, None),
    previous: Axis | None = None,
    rows: int = 0,
) -> LogAxis:
    """An axis that includes two positive extremes.

    Like :func:`~accel_tui.widgets.chart.value_axis.value_axis` it grows immediately and shrinks rarely. Powers of ten
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
    if high < _NARROW * low:
        # At most twice as far down, even for rounding: 0 has no place.
        linear = value_axis(low, high)
        low, high = max(linear.low, low / _NARROW), max(linear.high, low * 1.01)
    elif rows and high >= _LONG * low:
        min_ticks = 1 if high < _LONG**2 * low else 2  # powers of ten; with only one, there are digits too
        decades = ends_on_rows(math.log10(low), math.log10(high), rows, _DECADES, min_ticks=min_ticks, min_step=1.0)
        low, high = min(low, 10 ** decades[0]), max(high, 10 ** decades[1])
    else:
        low, high = _round(low, down=True), _round(high, down=False)
    if (
        isinstance(previous, LogAxis)
        and previous.low <= low
        and high <= previous.high
        and math.log(previous.high / previous.low) * _SHRINK_BELOW <= math.log(high / low)
    ):
        return previous
    return LogAxis(low, high)


def positive(curve: Curve) -> Curve:
    """The curve without buckets that have no logarithm; low is 0 for buckets with some values without one."""
    if not (curve.low <= 0).any():
        return curve
    known, positive_total = curve.high > 0, curve.total > 0
    return replace(
        curve,
        low=np.where(known, np.maximum(curve.low, 0), np.nan),
        high=np.where(known, curve.high, np.nan),
        total=np.where(positive_total, curve.total, 0),
        finite=np.where(positive_total, curve.finite, 0),
    )


def _is_power(tick: float) -> bool:
    power = math.log10(tick)
    return abs(power - round(power)) < 1e-9


def _round(value: float, *, down: bool) -> float:
    """The next lower 1, 2 or 5 times a power of ten, or the next higher."""
    power = 10.0 ** math.floor(math.log10(value) + 1e-9)
    if down:
        return next(digit * power for digit in (5, 2, 1) if digit * power <= value * (1 + 1e-9))
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power >= value * (1 - 1e-9))
