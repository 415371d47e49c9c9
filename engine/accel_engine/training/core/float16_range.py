"""Says which values of the data float16 cannot hold: on them, training fails or stands still."""

from typing import Any

import numpy as np

from accel_engine.data.dataset import Dataset, Split
from accel_engine.data.structure import Structure, flatten, named_leaves
from accel_engine.text import printable
from accel_engine.words import numbers

LARGEST = 65_504
"""The largest number in float16."""

_ROWS = 1 << 16
"""Rows that are looked at together."""

_LISTED = 3

CURE = "use --precision mixed_bfloat16 or float32, or scale the values"


def float16_notes(dataset: Dataset, outputs: Structure, scale: float) -> list[str]:
    """Warnings of values in memory that are infinite in float16, or out of reach for outputs in float16.

    Args:
        dataset: The data.
        outputs: The specs of the model's outputs.
        scale: The factor of inputs.
    """
    train = dataset.train
    if not isinstance(train, Split):
        return []
    notes = [
        f"inputs{found} are infinite in the model's layers in float16, which ends at {LARGEST:,}: {CURE}"
        for found in _too_large(train.inputs, dataset.feature_names, scale)
    ]
    if any(str(each.dtype) == "float16" for each in flatten(outputs)):
        notes += [
            f"targets{found} are out of reach for an output in float16, which ends at {LARGEST:,}: {CURE}, or give the "
            'last layer dtype="float32"'
            for found in _too_large(train.targets, dataset.target_names, 1.0)
        ]
    return notes


def _too_large(structure: Structure, names: tuple[str, ...], scale: float) -> list[str]:
    """Of each array with such values, where they are and the largest one, in words."""
    found = []
    for name, array in named_leaves(structure):
        if not isinstance(array, np.ndarray) or array.dtype.kind != "f":
            continue
        largest = scale * _largest(array)
        places = np.flatnonzero(largest > LARGEST).tolist()
        if not places:
            continue
        by_column = array.ndim == 2 and array.shape[1] > 1
        columns = [names[each] if len(names) == len(largest) else str(each) for each in places]
        where = f" in column {numbers.listed(columns, _LISTED)}" if by_column else ""
        found.append(printable(f"{name and f' {name}'}{where} of up to {float(largest.max()):,.6g}"))
    return found


def _largest(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The largest finite absolute value of each column of a matrix, or of all values."""
    axis = 0 if array.ndim == 2 else None
    largest: Any = np.zeros(array.shape[1] if array.ndim == 2 else 1)
    for first in range(0, len(array), _ROWS):
        sizes = np.abs(array[first : first + _ROWS])
        largest = np.maximum(largest, np.where(np.isfinite(sizes), sizes, 0).max(axis=axis))
    return np.atleast_1d(largest)
