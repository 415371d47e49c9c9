"""Splits a table by a column that says which rows are for training, validation and test; without TensorFlow."""

from collections.abc import Sequence

import numpy as np

from accel_engine.data.splits import SplitRows
from accel_engine.errors import PlanError

SPLIT_NAMES = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test", "testing"),
}
"""Values of such a column, in any case."""


def split_by_values(values: Sequence[object], column: str) -> SplitRows:
    """Split rows by a column.

    Args:
        values: Its values, which are :data:`SPLIT_NAMES`.
        column: Its name.

    Raises:
        PlanError: A value is none of those, or there are no training rows.
    """
    splits = {name: split for split, own in SPLIT_NAMES.items() for name in own}
    assigned = np.array([splits.get(str(value).lower(), "") for value in values])
    if unknown := np.flatnonzero(assigned == "").tolist():
        shown = repr(values[unknown[0]]) if values[unknown[0]] is not None else "no value"
        reason = f"row {unknown[0] + 1:,} has {shown}; the column must have train, validation or test"
        raise PlanError("split", f"column:{column}", reason)
    rows = SplitRows(*(np.flatnonzero(assigned == split) for split in SPLIT_NAMES))
    if not len(rows.train):
        raise PlanError("split", f"column:{column}", "no row has the value train")
    return rows
