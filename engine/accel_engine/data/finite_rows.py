"""Finds examples with values that are NaN or infinite; without TensorFlow."""

from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.data_options import DataOptions, or_skip
from accel_engine.data.structure import Batch, map_structure, named_leaves
from accel_engine.errors import DataError

_CHUNK = 1 << 24
"""Values checked at a time, so that checking large data takes little memory."""


def finite_rows(part: Batch, names: Batch, options: DataOptions) -> tuple[Batch, list[str]]:
    """Leave examples out that have values which are not finite, if the plan says so.

    Args:
        part: Arrays ``[n, ...]``.
        names: Names of the parts, for messages.
        options: ``invalid_examples`` says whether to fail or to skip them.

    Returns:
        The examples that are left, and notes about the others.

    Raises:
        DataError: There are such examples and the plan does not skip them, or none are left.
    """
    keep: npt.NDArray[np.bool_] | None = None
    first = ""
    for structure, name in zip(part, names, strict=True):
        for path, array in named_leaves(structure, name):
            finite = _finite(array)
            if finite is None:
                continue
            place = f"{path}[{int(np.argmin(finite))}]"
            if options.invalid_examples != "skip":
                raise or_skip(DataError(f"{place} has values that are NaN or infinite"))
            first = first or place
            keep = finite if keep is None else keep & finite
    if keep is None:
        return part, []
    if not keep.any():
        raise DataError(f"all examples have values that are NaN or infinite, the first one in {first}")
    skipped = int((~keep).sum())
    kept: Batch = map_structure(lambda array: array[keep], part)
    return kept, [f"left out {skipped} of {len(keep)} examples with values that are NaN or infinite, first {first}"]


def _finite(array: npt.NDArray[Any]) -> npt.NDArray[np.bool_] | None:
    """Whether each row is finite; ``None`` if all are."""
    if array.dtype.kind != "f":
        return None
    rows = max(1, _CHUNK // max(1, array[0].size))
    parts = [
        np.isfinite(array[first : first + rows]).reshape(len(array[first : first + rows]), -1).all(axis=1)
        for first in range(0, len(array), rows)
    ]
    finite: npt.NDArray[np.bool_] = np.concatenate(parts)
    return None if finite.all() else finite
