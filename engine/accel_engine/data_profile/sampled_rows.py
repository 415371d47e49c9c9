"""Takes a bounded number of values of a split."""

import math
import time
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accel_engine.data.dataset import LazyArray, Split, take_rows
from accel_engine.data.structure import Structure, flatten

MAX_ROWS = 2000
"""Examples whose values are looked at."""

MAX_VALUES = 1 << 22
"""Numbers that are looked at, of all examples together: of large examples, evenly spaced ones."""

LAZY_BLOCK = 16
"""Examples that are read at a time of arrays that are not in memory."""

LAZY_SECONDS = 0.1
"""Time after which no more of these are read."""

Rows = npt.NDArray[np.intp]


class SampledRows(NamedTuple):
    """Some examples.

    Attributes:
        inputs: Their numbers, float32 ``[examples, features]``; ``None`` if inputs have none.
        targets: The arrays of their targets, ``[examples, ...]``.
        stride: One of so many features is in ``inputs``.
        features: Numbers of an example.
    """

    inputs: npt.NDArray[np.float32] | None
    targets: list[npt.NDArray[Any]]
    stride: int
    features: int

    def __len__(self) -> int:
        return len(self.inputs) if self.inputs is not None else len(self.targets[0]) if self.targets else 0


def some_rows(count: int, limit: int, seed: int = 0) -> Rows:
    """Rows of ``count`` in order, at most ``limit``: all, or some at random."""
    if count <= limit:
        return np.arange(count)
    return np.sort(np.random.default_rng(seed).choice(count, limit, replace=False))


def sample(split: Split, scale: float = 1.0) -> SampledRows:
    """Some examples of a split.

    Args:
        split: It has examples.
        scale: The factor that raw inputs are multiplied by.
    """
    numbers = [array for array in flatten(split.inputs) if array.dtype.kind in "fiub"]
    targets = flatten(split.targets)
    features = sum(math.prod(array.shape[1:]) for array in numbers)
    rows = some_rows(len(split), MAX_ROWS)
    stride = max(1, -(-features * len(rows) // MAX_VALUES))
    if not all(isinstance(array, np.ndarray) for array in (*numbers, *targets)):
        rows = _readable_rows([*numbers, *targets], len(split))
    parts = [_values(array, rows, stride) for array in numbers]
    joined = (np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0]) if parts else None
    if joined is not None and scale != 1.0:
        joined *= np.float32(scale)
    return SampledRows(joined, [take_rows(array, rows) for array in targets], stride, features)


def _values(array: npt.NDArray[Any] | LazyArray, rows: Rows, stride: int) -> npt.NDArray[np.float32]:
    if isinstance(array, np.ndarray) and array.flags.c_contiguous:  # reads the chosen values only
        return array.reshape(len(array), -1)[:, ::stride][rows].astype(np.float32)
    return take_rows(array, rows).reshape(len(rows), -1)[:, ::stride].astype(np.float32)


def _readable_rows(arrays: list[npt.NDArray[Any] | LazyArray], count: int) -> Rows:
    """Random rows, as many as can be read or decoded in the time."""
    began = time.perf_counter()
    order = np.random.default_rng(0).permutation(count)[:MAX_ROWS]
    for array in arrays:
        take_rows(array, np.sort(order[:LAZY_BLOCK]))
    seconds = max(time.perf_counter() - began, 1e-6)
    return np.sort(order[: max(1, int(LAZY_BLOCK * LAZY_SECONDS / seconds))])


def in_memory(structure: Structure) -> list[npt.NDArray[Any]] | None:
    """The arrays of a structure; ``None`` if one is lazy, or there are none."""
    arrays: list[npt.NDArray[Any] | LazyArray] = flatten(structure)
    known = [array for array in arrays if isinstance(array, np.ndarray)]
    return known if known and len(known) == len(arrays) else None
