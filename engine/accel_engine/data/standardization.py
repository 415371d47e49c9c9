"""Standardises columns of numbers by statistics of the training data, and restores their units."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

_CONSTANT = 1e-12
"""A standard deviation that is smaller, relative to the mean, is the rounding error of a constant column."""


@dataclass(frozen=True, slots=True, eq=False)
class Standardization:
    """Mean and scale of some columns.

    Attributes:
        mean: What is subtracted, float64 ``[columns]``.
        scale: What is divided by then, float64 ``[columns]``: the standard deviation, or 1 for a constant column.
    """

    mean: npt.NDArray[np.float64]
    scale: npt.NDArray[np.float64]

    @classmethod
    def of_columns(cls, columns: Sequence[npt.NDArray[Any]]) -> Self:
        """The statistics of some columns of numbers, ``[examples]`` each."""
        mean = np.array([np.mean(values, dtype=np.float64) for values in columns])
        deviation = np.array([np.std(values, dtype=np.float64) for values in columns])
        return cls(mean, np.where(deviation <= _CONSTANT * np.abs(mean), 1.0, deviation))

    def restore(self, values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Give an array whose last axis has the columns, or that has one column only, its units back."""
        restored: npt.NDArray[np.float64] = values * self.scale + self.mean
        return restored
