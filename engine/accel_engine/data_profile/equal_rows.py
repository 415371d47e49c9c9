"""Finds equal and near examples, and whether their targets agree."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accel_engine.data.dataset import Split
from accel_engine.data_profile.values import in_memory, some_rows

MAX_BYTES = 1 << 25
"""Bytes of inputs that are compared, of training and validation each."""

MAX_COMPARED = 200_000
"""Examples that are compared."""

MAX_TEXTS = 20_000
"""The same for texts."""

ROW_BYTES = 1 << 12
"""Bytes of an example that are hashed: of a larger one, evenly spaced values."""

_BLOCK = 1 << 21
"""Bytes that are hashed at a time."""

Hashes = npt.NDArray[np.uint64]


class EqualRows(NamedTuple):
    """Equal rows; :class:`accel_engine.run.diagnostics.DataProfile` has the same fields."""

    compared: int = 0
    compared_validation: int = 0
    duplicates: int = 0
    conflicts: int = 0
    leaked: int = 0


def compare_rows(train: Split, validation: Split | None, *, has_classes: bool) -> EqualRows:
    """Compare examples in memory with each other.

    Args:
        train: The training examples.
        validation: The validation examples; ``None`` if there are none.
        has_classes: Whether each example has one class, so that equal inputs with another one contradict each other.
    """
    found = _hashes(train)
    if found is None:
        return EqualRows()
    rows, hashes = found
    order = np.argsort(hashes, kind="stable")
    same = hashes[order][1:] == hashes[order][:-1]
    whole = _with_targets(train, rows, hashes)
    conflicts = int(np.sum(same & (whole[order][1:] != whole[order][:-1]))) if has_classes else 0
    others = _hashes(validation) if validation is not None else None
    leaked = np.zeros(0, bool)
    if validation is not None and others is not None:
        leaked = np.isin(_with_targets(validation, *others), whole)
    return EqualRows(len(rows), len(leaked), int(same.sum()), conflicts, int(leaked.sum()))


def _with_targets(split: Split, rows: npt.NDArray[np.intp], hashes: Hashes) -> Hashes:
    """Hashes of inputs and targets: equal inputs with another target are another example. Of inputs without targets."""
    for array in in_memory(split.targets) or ():
        hashes = hashes * np.uint64(0x9E3779B97F4A7C15) + row_hashes(array, rows)
    return hashes


def _hashes(split: Split) -> tuple[npt.NDArray[np.intp], Hashes] | None:
    """Some rows of a split with a hash of the inputs of each; ``None`` if they are not in memory."""
    arrays = in_memory(split.inputs)
    if arrays is None or not len(split):
        return None
    texts = any(array.dtype.kind == "O" for array in arrays)
    row_bytes = max(1, sum(array.nbytes for array in arrays) // len(split))
    stride = max(1, row_bytes // ROW_BYTES)
    limit = min(MAX_TEXTS if texts else MAX_COMPARED, max(1, MAX_BYTES // (row_bytes // stride)))
    rows = some_rows(len(split), limit)
    found = np.zeros(len(rows), np.uint64)
    for array in arrays:
        found = found * np.uint64(0x9E3779B97F4A7C15) + row_hashes(array, rows, stride)
    return rows, found


def row_hashes(array: npt.NDArray[Any], rows: npt.NDArray[np.intp], stride: int = 1) -> Hashes:
    """A hash of some rows of an array, ``[len(rows)]``; equal rows have equal ones.

    Args:
        array: ``[examples, ...]``.
        rows: The rows.
        stride: Every ``stride``-th value is hashed.
    """
    if array.dtype.kind == "O":
        return np.array([hash(tuple(np.ravel(array[row]))) & (2**64 - 1) for row in rows], np.uint64)
    step = max(1, _BLOCK * stride * len(array) // max(1, array.nbytes))
    flat = array.reshape(len(array), -1)[:, ::stride] if array.flags.c_contiguous else array
    blocks = [_hash_block(flat[rows[first : first + step]]) for first in range(0, len(rows), step)]
    return np.concatenate(blocks) if blocks else np.zeros(0, np.uint64)


def _hash_block(block: npt.NDArray[Any]) -> Hashes:
    """The sum over words of 64 bits, each mixed and multiplied by a random odd number."""
    flat = np.ascontiguousarray(block.reshape(len(block), -1))
    raw = flat.view(np.uint8).reshape(len(block), -1)
    words = np.pad(raw, [(0, 0), (0, -raw.shape[1] % 8)]).view(np.uint64)
    factors = np.random.default_rng(1).integers(0, 2**63, words.shape[1], np.uint64) * np.uint64(2) + np.uint64(1)
    # Numbers often differ in their highest bits only, which a product alone would not spread.
    mixed = (words ^ (words >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    mixed ^= mixed >> np.uint64(32)
    return (mixed * factors).sum(axis=1, dtype=np.uint64)


MAX_EXAMPLES = 1000
"""Examples that are compared with each other."""

MAX_FEATURES = 2048
"""Features that are compared: evenly spaced ones if there are more."""

MIN_EXAMPLES = 50
"""Examples below which nothing is measured."""


class Agreement(NamedTuple):
    """How often neighbours agree; see :class:`accel_engine.run.diagnostics.DataProfile`."""

    neighbours: float | None = None
    chance: float | None = None
    examples: int = 0


def agreement(
    values: npt.NDArray[np.float32],
    labels: npt.NDArray[np.int64] | None,
    numbers: npt.NDArray[np.float64] | None,
    *,
    standardize: bool,
) -> Agreement:
    """Measure how often the nearest example has the same class, or how the numbers of nearest examples correlate.

    Args:
        values: ``[examples, features]``.
        labels: The class of each, ``[examples]``; ``None`` if they have none.
        numbers: The number to predict, ``[examples]``, which counts without labels; ``None`` if there is none.
        standardize: Whether to divide each feature by its standard deviation, as features of a table differ.
    """
    targets = labels if labels is not None else numbers
    if targets is None or len(values) < MIN_EXAMPLES or not np.isfinite(values).all():
        return Agreement()
    values, targets = _distinct(values[:MAX_EXAMPLES], targets[:MAX_EXAMPLES])
    if len(values) < MIN_EXAMPLES or not np.isfinite(targets).all() or np.ptp(targets) == 0:
        return Agreement()
    nearest = _nearest(values[:, :: -(-values.shape[1] // MAX_FEATURES)], standardize=standardize)
    if labels is None:
        return Agreement(_correlation(targets, targets[nearest]), 0.0, len(values))
    shares = np.unique(targets, return_counts=True)[1] / len(targets)
    return Agreement(float(np.mean(targets == targets[nearest])), float(np.sum(shares**2)), len(values))


def _distinct(
    values: npt.NDArray[np.float32], targets: npt.NDArray[np.generic]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]:
    """The first of equal examples only: each of them would be the other's neighbour."""
    _, rows = np.unique(values @ np.random.default_rng(0).random(values.shape[1]), return_index=True)
    rows.sort()
    return values[rows], targets[rows].astype(np.float64)


def _nearest(values: npt.NDArray[np.float32], *, standardize: bool) -> npt.NDArray[np.intp]:
    centred = values - values.mean(axis=0)
    if standardize:
        spread = centred.std(axis=0)
        centred = centred[:, spread > 0] / spread[spread > 0]
    squares = np.einsum("ij,ij->i", centred, centred)
    distances = squares[:, np.newaxis] + squares - 2 * (centred @ centred.T)
    np.fill_diagonal(distances, np.inf)
    return np.argmin(distances, axis=1)


def _correlation(first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> float | None:
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return float(np.corrcoef(first, second)[0, 1])
