"""Axes: linear and logarithmic ranges, round ticks, and number formats."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar, Self

import numpy as np

from accel_engine.words import numbers
from accel_tui.run_state.curve import Floats

NARROW = 2.0
"""Ratio of the ends of a logarithmic axis below which evenly spaced labels are rounder."""

_LOG_DIGITS = ((1, 2, 3, 4, 5, 6, 7, 8, 9), (1, 2, 5), (1, 3), (1,))
_MIN_TICKS = 3
_ROUND_ENDS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)  # at most a third of a chart stays empty
_MIN_STEPS = 10
_EXACT = 1e-3  # rows, or units in the last place: tolerance for rounding
_DECIMALS = 2  # beyond the first digit of the spacing
_DOT = 1 / 4  # rows
_ROUND = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.001)  # of a number's power of ten
_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


@dataclass(frozen=True, slots=True)
class Axis:
    """A linear axis."""

    scale: ClassVar[str] = ""
    """Name of its scale; empty if it is linear."""
    least_step: ClassVar[float] = 0.0
    """The least distance of two ticks."""

    low: float
    """Its beginning."""
    high: float
    """Its end, above ``low``."""

    @classmethod
    def of_ends(cls, low: float, high: float) -> Self:
        """From the lowest number to the highest one; around it if they are the same."""
        return cls(low, high) if high > low else cls(low - 0.5, low + 0.5)

    def fraction(self, values: Floats) -> Floats:
        """Positions of numbers: 0 at the beginning, 1 at the end; NaN for NaN."""
        return (values - self.low) / (self.high - self.low)

    def at(self, fraction: float) -> float:
        """The number at a position, from 0 to 1."""
        return self.low + fraction * (self.high - self.low)

    def ticks(self, max_count: int) -> list[float]:
        """Round, evenly spaced numbers on the axis, at most ``max_count``."""
        if max_count < 1:
            return []
        step = round_up(max((self.high - self.low) / max_count, self.least_step))
        while True:
            first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
            if last - first < max_count:
                return [number * step for number in range(first, last + 1)]
            step = round_up(step * 1.5)

    def ticks_on_rows(self, rows: int, max_count: int) -> list[tuple[float, int]]:
        """Round numbers on evenly spaced rows, at most ``max_count``, rising; else the ends.

        Args:
            rows: Rows from the beginning to the end.
            max_count: At least 2.

        Returns:
            Each number with its row, counted from 0 at the end.
        """
        length = self.high - self.low
        step = round_up(max(length / max_count / 2, self.least_step))
        while step <= length * (1 + _EXACT):
            rows_per_tick, last = step * rows / length, math.floor(self.high / step + 1e-6)
            top = (self.high - last * step) * rows / length
            count = math.floor((rows - top) / rows_per_tick + _EXACT) + 1
            is_possible = _is_whole(step) or not self.least_step
            if is_possible and 2 <= count <= max_count and _is_whole(rows_per_tick) and _is_whole(top):
                return [((last - back) * step, round(top + back * rows_per_tick)) for back in reversed(range(count))]
            step = _after(step)
        return [(self.low, rows), (self.high, 0)]

    def labels(self, ticks: Sequence[float]) -> list[str]:
        """Labels of ticks."""
        return labels(ticks)


@dataclass(frozen=True, slots=True)
class LogAxis(Axis):
    """A logarithmic range of positive numbers."""

    scale: ClassVar[str] = "log"

    def fraction(self, values: Floats) -> Floats:
        """Positions of numbers: 0 at the beginning, 1 at the end; NaN for numbers that are not positive."""
        logs: Floats = np.log(values, out=np.full(np.shape(values), np.nan), where=np.asarray(values) > 0)
        return (logs - math.log(self.low)) / (math.log(self.high) - math.log(self.low))

    def at(self, fraction: float) -> float:
        """The number at a position, from 0 to 1."""
        return float(self.low * (self.high / self.low) ** fraction)

    def ticks(self, max_count: int) -> list[float]:
        """Round numbers on the axis, at most ``max_count``: powers of ten, and digits in between if they fit."""
        if max_count < 1:
            return []
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        for digits in _LOG_DIGITS:
            found = [digit * 10.0**power for power in range(first, last + 1) for digit in digits]
            found = [tick for tick in found if self.low * (1 - 1e-9) <= tick <= self.high * (1 + 1e-9)]
            if digits is _LOG_DIGITS[0] and len(found) < _MIN_TICKS:
                return Axis.ticks(self, max_count)
            if len(found) <= max_count:
                return found
        return found[:: math.ceil(len(found) / max_count)]

    def ticks_on_rows(self, rows: int, max_count: int) -> list[tuple[float, int]]:
        """Powers of ten on evenly spaced rows if possible, and round numbers whose dot is in the middle of a row."""
        ticks = self.ticks(max_count)
        if not self._are_on_rows([tick for tick in ticks if math.isclose(tick, 10.0 ** round(math.log10(tick)))], rows):
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            for stride in range(2, last - first + 1):
                powers = [10.0**power for power in range(first, last + 1) if power % stride == 0]
                if 2 <= len(powers) <= max_count and self._are_on_rows(powers, rows):
                    ticks = powers
                    break
        positions = ((1 - self.fraction(np.array(ticks))) * rows).tolist()
        found = {round(at): tick for at, tick in zip(positions, ticks, strict=True) if abs(at - round(at)) < _DOT / 2}
        if len(found) < 2:
            apart = max(2, math.ceil(rows / max(max_count - 1, 1)))
            for row in (rows, *range(0, rows, apart)):
                if all(abs(row - other) >= apart for other in found):
                    found[row] = self._roundest_at(row, rows)
        return [(found[row], row) for row in sorted(found, reverse=True)]

    def _roundest_at(self, row: int, rows: int) -> float:
        """The number with the fewest digits whose dot is in the middle of a row; of an end of the axis, within it."""
        low, high = (self.at(min(max(1 - (row + beside) / rows, 0.0), 1.0)) for beside in (_DOT / 2, -_DOT / 2))
        power = 10.0 ** math.floor(math.log10(high))
        rounded = (math.floor(high / power / unit * (1 + 1e-9)) * unit * power for unit in _ROUND)
        return next((number for number in rounded if number >= low * (1 - 1e-9)), self.at(1 - row / rows))

    def _are_on_rows(self, ticks: Sequence[float], rows: int) -> bool:
        exact = (1 - self.fraction(np.array(ticks))) * rows
        return bool(np.allclose(exact, np.rint(exact), rtol=0, atol=1e-3))

    def labels(self, ticks: Sequence[float]) -> list[str]:
        """Each number as short as possible."""
        evenly = len(ticks) > 1 and ticks[-1] < NARROW * ticks[0]
        return labels(ticks) if evenly else [text for tick in ticks for text in labels([tick])]


@dataclass(frozen=True, slots=True)
class NinesAxis(Axis):
    """A range of shares up to 1, logarithmic in their distance to 1: 0.9, 0.99, 0.999. Its ``high`` is 1."""

    scale: ClassVar[str] = "log of 1-x"

    least: float
    """The least distance to 1 that has a place; shares that are nearer are at the end."""

    @property
    def distances(self) -> LogAxis:
        """The axis of the distances between the shares and 1."""
        return LogAxis(self.least, 1 - self.low)

    def fraction(self, values: Floats) -> Floats:
        """Positions of shares: 0 at the beginning, 1 at the end; NaN for NaN."""
        return 1 - self.distances.fraction(np.maximum(1 - values, self.least))

    def at(self, fraction: float) -> float:
        """The share at a position, from 0 to 1."""
        return 1 - self.distances.at(1 - fraction)

    def ticks(self, max_count: int) -> list[float]:
        """Shares with round distances to 1, at most ``max_count``."""
        return [1 - tick for tick in reversed(self.distances.ticks(max_count)) if tick <= 1]

    def ticks_on_rows(self, rows: int, max_count: int) -> list[tuple[float, int]]:
        """The same on rows."""
        found = reversed(self.distances.ticks_on_rows(rows, max_count))
        return [(1 - tick, rows - row) for tick, row in found if tick <= 1]

    def labels(self, ticks: Sequence[float]) -> list[str]:
        """Each share to two digits of its distance to 1."""
        return [f"{1 - Decimal(f'{1 - tick:.2g}'):f}" for tick in ticks]


@dataclass(frozen=True, slots=True)
class DoublingAxis(LogAxis):
    """A logarithmic range of positive numbers whose ticks are powers of two, such as batch sizes."""

    def ticks(self, max_count: int) -> list[float]:
        """Powers of two on the axis, at most ``max_count``."""
        first, last = math.ceil(math.log2(self.low) - 1e-9), math.floor(math.log2(self.high) + 1e-9)
        found = [2.0**power for power in range(first, last + 1)]
        return found[:: math.ceil(len(found) / max_count)] if found and max_count > 0 else []

    def labels(self, ticks: Sequence[float]) -> list[str]:
        """The numbers, in full."""
        return [f"{tick:,.0f}" for tick in ticks]


@dataclass(frozen=True, slots=True)
class WholeAxis(Axis):
    """A linear axis of whole numbers, such as epochs or errors: no tick is a part of one."""

    least_step: ClassVar[float] = 1.0


def step_axis(count: int, end: int | None = None) -> Axis:
    """A step axis from 0, which grows in jumps so that most frames keep it.

    Args:
        count: Number of steps to include.
        end: Last step of the run, if known; the axis does not go beyond it.
    """
    needed = max(count, _MIN_STEPS)
    power = 10.0 ** math.floor(math.log10(needed))
    high = next(end_digit * power for end_digit in _ROUND_ENDS if end_digit * power >= needed)
    return Axis(0.0, min(high, float(end)) if end is not None and end >= max(count, 1) else high)


def labels(ticks: Sequence[float]) -> list[str]:
    """Labels of evenly spaced numbers, as short as possible: ``0.25``, ``1.2k``, ``3M``, ``1e-5``."""
    largest = max((abs(tick) for tick in ticks), default=0.0)
    step = _unit(ticks) if len(ticks) > 1 else largest / 100
    powers = not 1e-3 * (1 - 1e-9) <= largest < 1e15
    return ["0" if abs(tick) <= step / 2 else (_power if powers else _short)(tick, step) for tick in ticks]


def significant(value: float) -> str:
    """A measured value as text; ``-`` if it is not finite."""
    return numbers.metric(value) if math.isfinite(value) else "-"


def _power(value: float, step: float) -> str:
    exponent = math.floor(math.log10(abs(value)) + 1e-9)
    return f"{_decimal(value / 10.0**exponent, step / 10.0**exponent)}e{exponent}"


def _short(value: float, step: float) -> str:
    size = abs(value) * (1 + 1e-9)
    unit, suffix = next((unit for unit in _UNITS if size >= unit[0]), _UNITS[-1])
    # A spacing far below the unit would need many decimals: 1000002, not 1.000002M.
    return _decimal(value, step) if step < unit / 1000 else _decimal(value / unit, step / unit) + suffix


def _decimal(value: float, step: float) -> str:
    text = f"{value:.{max(0, -math.floor(math.log10(step) + 1e-9))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _unit(ticks: Sequence[float]) -> float:
    """The power of ten that evenly spaced numbers are multiples of, or one far below their spacing."""
    unit = 10.0 ** math.floor(math.log10(ticks[1] - ticks[0]) + 1e-9)
    finer = (unit / 10**decimals for decimals in range(_DECIMALS))
    return next((each for each in finer if all(_is_whole(tick / each) for tick in ticks)), unit / 10**_DECIMALS)


def _is_whole(value: float) -> bool:
    return abs(value - round(value)) < _EXACT


def _after(step: float) -> float:
    """The next 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step) + 1e-9)
    return next(digit * power for digit in (2, 2.5, 5, 10) if digit * power > step * (1 + 1e-9))


def round_up(value: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value) + 1e-9)
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power >= value * (1 - 1e-9))


def round_down(value: float) -> float:
    """The next lower 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value) + 1e-9)
    return next(digit * power for digit in (5, 2, 1) if digit * power <= value * (1 + 1e-9))
