"""Standardises columns of numbers in float64 by statistics of the training data, and restores their units."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from accel_engine.words import numbers

_CONSTANT = 8 * np.finfo(np.float64).eps
"""A standard deviation that is smaller, relative to the mean, is the rounding error of a constant column."""

_LOST = 1e-4
"""Standard deviations that a value may change by as float32, of which it keeps 24 bits."""

_KEPT = 2.0**-22
"""Standard deviations that float32 keeps of a value within four of them from the mean."""

_MOST_DIGITS = 22
"""Powers of ten up to this one are exact in float64."""

_LISTED = 6
"""Columns that a warning names."""

_SINGLE = 1e30
"""Columns of a scale above this, or below its inverse, leave the range of float32."""


@dataclass(frozen=True, slots=True, eq=False)
class Standardization:
    """Mean and scale of some columns."""

    mean: npt.NDArray[np.float64]
    """The means that are subtracted, float64 ``[columns]``."""
    scale: npt.NDArray[np.float64]
    """What is divided by then, float64 ``[columns]``: the standard deviation, or 1 for a constant column."""

    @classmethod
    def of_columns(cls, columns: Sequence[npt.NDArray[Any]]) -> Self:
        """The statistics of columns of finite numbers, ``[examples]`` each; of an empty one, mean 0 and scale 1."""
        moments = np.array([_moments(values) for values in columns], np.float64).reshape(-1, 2)
        mean, deviation = moments[:, 0], moments[:, 1]
        return cls(mean, np.where(deviation <= _CONSTANT * np.abs(mean), 1.0, deviation))

    def apply(self, values: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Standardise an array whose last axis has the columns."""
        with np.errstate(over="ignore"):  # of rows that are not valid
            standardized: npt.NDArray[np.float32] = ((values - self.mean) / self.scale).astype(np.float32)
        return standardized

    def restore(self, values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Give an array whose last axis has the columns, or that has one column only, its units back."""
        return values * self.scale + self.mean

    def restore_to_show(self, values: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
        """As :meth:`restore`, for columns that were float32: without the digits that it has lost, so that 0 stays 0."""
        restored = self.restore(values)
        digits = np.floor(-np.log10(_KEPT * self.scale))
        power = 10.0 ** np.clip(digits, -_MOST_DIGITS, _MOST_DIGITS)
        return np.where(digits > _MOST_DIGITS, restored, np.round(restored * power) / power + 0.0)  # no -0.0

    def lost_by_float32(self, columns: Sequence[npt.NDArray[Any]]) -> list[bool]:
        """Whether each column would change noticeably as float32: a time in milliseconds, or coordinates in metres.

        Args:
            columns: The columns of which these are the statistics; or some of their values.
        """
        return [
            not 1 / _SINGLE < scale < _SINGLE or _rounding(values) > _LOST * scale
            for values, scale in zip(columns, self.scale.tolist(), strict=True)
        ]


def precision_warnings(arrays: Iterable[tuple[str, npt.NDArray[Any]]]) -> tuple[str, ...]:
    """A warning on columns of float64 whose digits are lost where they become float32.

    Args:
        arrays: Arrays ``[examples]`` or ``[examples, columns]`` with their names; those of other types are left out.
    """
    lost: list[str] = []
    for name, array in arrays:
        if array.size and array.dtype == np.float64 and array.ndim in (1, 2):
            columns = list(array.reshape(len(array), -1).T)
            columns = [column[np.isfinite(column)] for column in columns]
            flags = Standardization.of_columns(columns).lost_by_float32(columns)
            lost += [f"{name}[:, {index}]" if array.ndim == 2 else name for index, flag in enumerate(flags) if flag]
    if not lost:
        return ()
    shown = numbers.listed(lost, _LISTED)
    return (f"float32 loses digits that tell examples apart in {shown}: subtract the mean, and divide by the scale",)


@dataclass(frozen=True, slots=True)
class WindowNormalization:
    """Makes a Keras model from raw windows to a model's inputs, ``[batch, window, columns]`` both."""

    window: int
    """Rows of a window."""
    scaling: Standardization
    """The statistics of the columns."""
    is_precise: bool = False
    """Whether the model takes float64, as float32 would lose digits of a column."""

    @property
    def dtype(self) -> str:
        """The type of raw windows."""
        return "float64" if self.is_precise else "float32"

    def __call__(self) -> Any:
        """The Keras model."""
        return import_module("accel_engine.data.standardization_model").model_of_windows(self)


def _moments(values: npt.NDArray[Any]) -> tuple[float, float]:
    """Mean and standard deviation, computed from differences, which lose no digits to a large mean."""
    if not len(values):
        return 0.0, 0.0
    first = float(values[0])
    differences = values.astype(np.float64) - first
    return first + float(differences.mean()), float(differences.std())


def _rounding(values: npt.NDArray[Any]) -> float:
    """The largest difference that float32 makes to finite values; infinite where it cannot hold them."""
    known = values[np.isfinite(values)].astype(np.float64)
    with np.errstate(over="ignore"):
        return float(np.abs(known - known.astype(np.float32)).max(initial=0.0))
