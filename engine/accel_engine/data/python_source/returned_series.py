"""Makes windows of time series of the arrays that a user's function returned."""

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset import Dataset
from accel_engine.data.python_source.returned import Returned
from accel_engine.data.series.array_series import windowed_splits
from accel_engine.data.structure import Batch, named_leaves
from accel_engine.errors import DataError, PlanError

PARTS = Batch("x", "y", "sample_weight")
"""The arrays' names in the plan; those of a dictionary have the names that they have there."""


def windowed_returned(name: str, returned: Returned, options: DataOptions) -> Dataset:
    """Make a dataset of the windows of arrays ``[rows]`` or ``[rows, columns]``.

    Args:
        name: The dataset's name, for titles.
        returned: What the function returned.
        options: The plan's window, horizon, columns and split.

    Raises:
        DataError: The arrays cannot be used.
        PlanError: The function returned a stream, or an option does not fit the arrays.
    """
    splits = {}
    for split, part in returned.splits.items():
        if not isinstance(part, Batch):
            reason = f"needs arrays, as windows of a stream may overlap its batches; the {split} data is a stream"
            raise PlanError("window", options.window, reason)
        if part.weights is not None:
            raise PlanError("window", options.window, "windows have no sample weights; return x or (x, y)")
        splits[split] = _named(part, options)
    return windowed_splits(name, splits, options)


def _named(part: Batch, options: DataOptions) -> Mapping[str, npt.NDArray[Any]]:
    """The arrays by name, without those that the plan ignores."""
    leaves = [leaf for each, name in zip(part, PARTS, strict=True) for leaf in _leaves(each, name)]
    names = [name for name, _ in leaves]
    if twice := [name for name in names if names.count(name) > 1]:
        raise DataError(f"inputs and targets both have an array {twice[0]!r}; give them different names")
    arrays = {name: array for name, array in leaves if name not in options.ignore}
    if not arrays:
        raise PlanError("ignore", options.ignore, "no array is left")
    return arrays


def _leaves(structure: Any, name: str) -> list[tuple[str, npt.NDArray[Any]]]:
    return list(named_leaves(structure, "" if isinstance(structure, dict) else name))
