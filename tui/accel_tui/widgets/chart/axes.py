"""Ranges, ticks and numbers that people can read at a glance."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_LADDER = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)  # so that a third of a chart stays empty at most
_FEWEST_STEPS = 10
_SHRINK_BELOW = 0.5
_FLAT = 1e-6  # float32 tells apart numbers that differ by 1e-7 of their size
_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


@dataclass(frozen=True, slots=True)
class Axis:
    """A range of numbers laid out evenly.

    Attributes:
        low: The number at its beginning.
        high: The number at its end, above ``low``.
    """

    low: float
    high: float

    def fraction(self, values: Floats) -> Floats:
        """Where numbers lie: 0 at the beginning, 1 at the end; NaN stays."""
        return (values - self.low) / (self.high - self.low)

    def ticks(self, most: int) -> list[float]:
        """Round numbers on the axis, evenly apart, at most ``most`` of them."""
        if most < 1:
            return []
        step = _round_up((self.high - self.low) / most)
        while True:
            first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
            if last - first < most:
                return [number * step for number in range(first, last + 1)]
            step = _round_up(step * 1.5)

    def labels(self, ticks: Sequence[float]) -> list[str]:
        """How the numbers of these ticks are written."""
        return labels(ticks)


def step_axis(count: int, end: int | None = None) -> Axis:
    """An axis of steps from 0, which grows in jumps so that most frames leave it alone.

    Args:
        count: Steps that it must have room for.
        end: The step that training will end at, where known: the axis goes no further than needed.
    """
    needed = max(count, _FEWEST_STEPS)
    power = 10.0 ** math.floor(math.log10(needed))
    high = next(rung * power for rung in _LADDER if rung * power >= needed)
    return Axis(0.0, min(high, float(end)) if end is not None and end >= max(count, 1) else high)


def value_axis(
    low: float,
    high: float,
    bounds: tuple[float | None, float | None] = (None, None),
    previous: Axis | None = None,
) -> Axis:
    """An axis for values between two extremes, a little rounded outwards.

    It grows as soon as it must, and shrinks only when half of it or more would stay empty.

    Args:
        low: The lowest value.
        high: The highest value; NaN when there are none.
        bounds: Ends that are fixed whatever the values are.
        previous: The axis until now.
    """
    if math.isnan(low) or math.isnan(high):
        low, high = 0.0, 1.0
    elif high - low <= _FLAT * max(abs(low), abs(high)):
        low, high = min(0.0, 2 * low), max(0.0, 2 * high) or float(low == 0)
    elif 0 < low < high / 2:
        low = 0.0  # where a falling loss is going anyway: the axis need not follow it there
    elif low / 2 < high < 0:
        high = 0.0
    step = _round_up((high - low) / 10)
    low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    if previous and previous.low <= low and high <= previous.high <= previous.low + (high - low) / _SHRINK_BELOW:
        low, high = previous.low, previous.high
    low = low if bounds[0] is None else bounds[0]
    high = high if bounds[1] is None else bounds[1]
    return Axis(low, high if high > low else low + max(abs(low), 1.0))


def labels(ticks: Sequence[float]) -> list[str]:
    """Write evenly spaced numbers as briefly as tells them apart: ``0.25``, ``1.2k``, ``3M``, ``1e-5``."""
    largest = max((abs(tick) for tick in ticks), default=0.0)
    step = ticks[1] - ticks[0] if len(ticks) > 1 else largest / 100
    powers = not 1e-3 * (1 - 1e-9) <= largest < 1e15
    return ["0" if abs(tick) <= step / 2 else (_power if powers else _short)(tick, step) for tick in ticks]


def significant(value: float) -> str:
    """Write a number with about four digits: ``0.2134``, ``12.35``, ``1234``, ``12.35k``, ``1.234e-5``."""
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
    # A step far below the unit would need many decimals after it: 1000002, not 1.000002M.
    return _decimal(value, step) if step < unit / 1000 else _decimal(value / unit, step / unit) + suffix


def _decimal(value: float, step: float) -> str:
    text = f"{value:.{max(0, -math.floor(math.log10(step) + 1e-9))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _round_up(value: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value) + 1e-9)
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power >= value * (1 - 1e-9))
