"""How far a model's outputs are from another's: each value by its own scale; without TensorFlow."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Self

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

LEAST_SPREAD = 0.01 / np.finfo(np.float32).eps
"""The least spread of a value, in roundings of its size: with the tolerances, a change that its type can tell."""

_NORMAL = 1.4826
"""A standard deviation in median deviations, of a normal distribution."""


class Divisor(Enum):
    """The divisors of the differences of an output."""

    NONE = "probabilities: nothing"
    COLUMNS = "numbers: the spread of each value on the last axis, which may have its own unit"
    RANGE = "images and other reconstructions: the range of all values"


@dataclass(frozen=True, slots=True, eq=False)
class OutputScale:
    """The scale of an output's values, from examples of the trained model's."""

    center: Floats
    """The median of each value on the last axis, ``[values]``; of all values, ``[1]``; empty for none."""
    spread: Floats
    """Their spread, in the same shape, but at least what their type can tell. Differences of values farther from the
    center are divided by their distance instead."""
    by_value: bool = False
    """Whether each value of an example is judged by itself, not by the largest difference of all."""

    @classmethod
    def of(cls, outputs: npt.NDArray[Any], divisor: Divisor) -> Self:
        """The scale of some outputs, ``[examples, ...]``; what is not finite does not count."""
        if divisor is Divisor.NONE:
            return cls(np.zeros(0), np.zeros(0))
        columns = _columns(outputs, outputs.shape[-1] if divisor is Divisor.COLUMNS and outputs.ndim > 1 else 1)
        found = columns.reshape(-1, columns.shape[-1])
        found = np.where(np.isfinite(found), found, np.nan)
        found[:, np.isnan(found).all(axis=0)] = 0.0
        center = np.nanmedian(found, axis=0)
        if divisor is Divisor.RANGE:
            return cls(center, np.nanmax(found, axis=0) - np.nanmin(found, axis=0))
        apart = np.abs(found - center)
        spread = _NORMAL * np.nanmedian(apart, axis=0)
        rounding = np.finfo(outputs.dtype if outputs.dtype.kind == "f" else np.float32).eps
        least = LEAST_SPREAD * rounding * np.abs(center)
        return cls(center, np.maximum(least, np.where(spread > 0, spread, np.nanmean(apart, axis=0))), by_value=True)

    def differences(self, expected: npt.NDArray[Any], found: npt.NDArray[Any]) -> Floats:
        """The difference of each value of each example, in parts of its scale.

        Args:
            expected: ``[batch, ...]``.
            found: The same; the difference of NaN and a number is infinite.

        Returns:
            ``[batch, values]``; ``[batch, 1]``, the largest one, unless they are judged by value.

        Raises:
            ValueError: The shapes differ.
        """
        if expected.shape != found.shape:
            raise ValueError(f"an output has the shape {found.shape}, not {expected.shape}")
        wanted, had = (_columns(each, max(1, len(self.center))) for each in (expected, found))
        with np.errstate(invalid="ignore"):
            apart = np.where(wanted == had, 0.0, np.abs(wanted - had))
        apart[np.isnan(wanted) & np.isnan(had)] = 0.0
        apart[np.isnan(apart)] = np.inf
        parts = np.asarray(apart / self._scale(wanted)).reshape(len(apart), -1)
        return parts if self.by_value else parts.max(axis=1, initial=0.0, keepdims=True)

    def _scale(self, wanted: Floats) -> Floats:
        """The divisor of a difference from each of some values."""
        if not len(self.center):
            return np.ones(1)
        distance = np.where(np.isfinite(wanted), np.abs(np.nan_to_num(wanted) - self.center), 0.0)
        scale = np.maximum(distance, self.spread)
        return np.where(scale > 0, scale, 1.0)


def _columns(output: npt.NDArray[Any], count: int) -> Floats:
    """The values of each example, ``[batch, places, count]``."""
    rows = np.asarray(output, np.float64).reshape(len(output), -1)
    return rows.reshape(len(rows), -1, count if count and rows.shape[1] % count == 0 else 1)


@dataclass(slots=True)
class Differences:
    """The differences of a model's outputs, over all examples."""

    scales: Sequence[OutputScale]
    """The scale of each output."""
    count: int = 0
    """Examples so far."""
    sums: list[Floats] = field(default_factory=list)
    """The sum over the examples, of each value of each output."""
    largest: list[Floats] = field(default_factory=list)
    """The largest difference of each value of each output."""

    def add(self, expected: Sequence[npt.NDArray[Any]], found: Sequence[npt.NDArray[Any]]) -> None:
        """Add the outputs of a batch, an array ``[batch, ...]`` each.

        Raises:
            ValueError: The shapes differ.
        """
        batch = [scale.differences(*pair) for scale, *pair in zip(self.scales, expected, found, strict=True)]
        self.count += len(expected[0])
        sums, largest = [each.sum(axis=0) for each in batch], [each.max(axis=0, initial=0.0) for each in batch]
        self.sums = [a + b for a, b in zip(self.sums or sums, sums, strict=True)] if self.sums else sums
        self.largest = list(map(np.maximum, self.largest, largest)) if self.largest else largest

    def worst(self, *, by_mean: bool) -> tuple[float, int, int]:
        """The largest difference of a value, the place of its output, and its place in the output.

        Args:
            by_mean: Whether it is the mean over the examples, not the largest one.
        """
        values = [each / self.count for each in self.sums] if by_mean else self.largest
        return max((float(each.max()), place, int(each.argmax())) for place, each in enumerate(values))
