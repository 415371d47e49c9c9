"""Axes: ranges, round ticks, and number formats."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_LADDER = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)  # at most a third of a chart stays empty
_FEWEST_STEPS = 10
_EXACT = 1e-3  # rows, or units in the last place: tolerance for rounding
_DECIMALS = 2  # beyond the first digit of the spacing
_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


@dataclass(frozen=True, slots=True)
class Axis:
    """A linear axis.

    Attributes:
        low: Its beginning.
        high: Its end, above ``low``.
    """

    low: float
    high: float

    def fraction(self, values: Floats) -> Floats:
        """Positions of numbers: 0 at the beginning, 1 at the end; NaN for NaN."""
        return (values - self.low) / (self.high - self.low)

    def ticks(self, most: int) -> list[float]:
        """Round, evenly spaced numbers on the axis, at most ``most``."""
        if most < 1:
            return []
        step = round_up((self.high - self.low) / most)
        while True:
            first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
            if last - first < most:
                return [number * step for number in range(first, last + 1)]
            step = round_up(step * 1.5)

    def ticks_on_rows(self, rows: int, most: int) -> list[tuple[float, int]]:
        """Round numbers on evenly spaced rows, at most ``most``, rising; else the ends.

        Args:
            rows: Rows from the beginning to the end.
            most: At least 2.

        Returns:
            Each number with its row, counted from 0 at the end.
        """
        length = self.high - self.low
        step = round_up(length / most / 2)
        while step <= length * (1 + _EXACT):
            pitch, last = step * rows / length, math.floor(self.high / step + 1e-6)
            top = (self.high - last * step) * rows / length
            count = math.floor((rows - top) / pitch + _EXACT) + 1
            if 2 <= count <= most and _is_whole(pitch) and _is_whole(top):
                return [((last - back) * step, round(top + back * pitch)) for back in reversed(range(count))]
            step = _after(step)
        return [(self.low, rows), (self.high, 0)]

    def labels(self, ticks: Sequence[float]) -> list[str]:
        """Labels of ticks."""
        return labels(ticks)


def step_axis(count: int, end: int | None = None) -> Axis:
    """A step axis from 0, which grows in jumps so that most frames keep it.

    Args:
        count: Number of steps to include.
        end: Last step of the run, if known; the axis does not go beyond it.
    """
    needed = max(count, _FEWEST_STEPS)
    power = 10.0 ** math.floor(math.log10(needed))
    high = next(rung * power for rung in _LADDER if rung * power >= needed)
    return Axis(0.0, min(high, float(end)) if end is not None and end >= max(count, 1) else high)


def labels(ticks: Sequence[float]) -> list[str]:
    """Labels of evenly spaced numbers, as short as possible: ``0.25``, ``1.2k``, ``3M``, ``1e-5``."""
    largest = max((abs(tick) for tick in ticks), default=0.0)
    step = _unit(ticks) if len(ticks) > 1 else largest / 100
    powers = not 1e-3 * (1 - 1e-9) <= largest < 1e15
    return ["0" if abs(tick) <= step / 2 else (_power if powers else _short)(tick, step) for tick in ticks]


def significant(value: float) -> str:
    """A number with about four digits: ``0.2134``, ``12.35``, ``1234``, ``12.35k``, ``1.234e-5``."""
    size = abs(value)
    if not math.isfinite(value):
        return "-"
    if size and not 1e-3 <= size < 1e15:
        digits, exponent = f"{value:.3e}".split("e")
        return f"{digits}e{int(exponent)}"
    unit, suffix = next((unit for unit in _UNITS if size >= 10 * unit[0]), _UNITS[-1])
    whole = math.floor(math.log10(max(size / unit, 0.1)))
    return f"{value / unit:.{max(0, 3 - whole)}f}{suffix}"


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
    found: float = next((each for each in finer if all(_is_whole(tick / each) for tick in ticks)), unit / 10**_DECIMALS)
    return found


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
