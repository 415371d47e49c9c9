"""Takes a bounded number of values of a split: their range, the shift to validation, and what targets are."""

import math
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accel_engine.data.dataset import LazyArray, Split, take_rows
from accel_engine.data.structure import Structure, flatten
from accel_engine.run.diagnostics import InputProfile, Shift

SHIFTED_DEVIATIONS = 0.5
"""A difference of means that counts, in standard deviations: Cohen's medium effect."""

SHIFTED_ERRORS = 6.0
"""The same in standard errors: by chance, one of a billion features differs so much."""

FEW_VALUES = 8
"""Values of a feature up to which equal examples may be an accident."""

MAX_COUNTED = 256
"""Examples and features of which values are counted."""

MIN_EXAMPLES = 50
"""Examples below which no shift is measured."""

_CLIPPED = 3.0
"""Standard deviations from the mean beyond which a value counts as the nearest within."""

Matrix = npt.NDArray[np.float32]

_MAX_CLASSES = 1000
"""Classes up to which examples of each are counted."""

_MAX_LABELS = 1 << 22
"""Examples that are counted, the first ones."""

_Labels = npt.NDArray[np.int64]


def input_profile(values: Matrix) -> InputProfile:
    """The range of some inputs.

    Args:
        values: ``[examples, features]``.
    """
    finite = np.isfinite(values)
    share = 1.0 - float(finite.mean()) if finite.size else 0.0
    known = values if share == 0 else values[finite]
    if not known.size:
        return InputProfile(None, None, None, None, share)
    mean, deviation = float(known.mean(dtype=np.float64)), float(known.std(dtype=np.float64))
    return InputProfile(float(known.min()), float(known.max()), mean, deviation, share)


def constant_features(values: Matrix) -> int:
    """Number of features with one value in all examples."""
    return int(np.sum(values.max(axis=0) == values.min(axis=0)))


def continuous_features(values: Matrix) -> int:
    """Number of features with more than 8 values, which categories and flags seldom have; of all, from some of them."""
    stride: int = max(1, values.shape[1] // MAX_COUNTED)
    ordered = np.sort(values[:MAX_COUNTED, ::stride], axis=0)
    distinct = 1 + np.sum(ordered[1:] != ordered[:-1], axis=0)
    return stride * len(np.flatnonzero(distinct > FEW_VALUES))


def feature_scales(values: Matrix) -> float | None:
    """Ratio of the deviations of the widest and the narrowest feature, without the outer 5% and constant ones."""
    with np.errstate(all="ignore"):
        deviations = values.std(axis=0, dtype=np.float64)
    varied = deviations[np.isfinite(deviations) & (deviations > 0)]
    if len(varied) < 2:
        return None
    narrow, wide = np.percentile(varied, [5, 95], method="nearest")
    return float(wide / narrow)


def find_shift(train: Matrix, validation: Matrix, names: Sequence[str], stride: int = 1) -> Shift | None:
    """The feature whose mean differs most; ``None`` if no feature varies, or with few examples.

    Args:
        train: ``[examples, features]``.
        validation: The same of validation.
        names: Names of the features; empty if they have none.
        stride: Every ``stride``-th feature is given.
    """
    if min(len(train), len(validation)) < MIN_EXAMPLES or train.shape[1] != validation.shape[1]:
        return None
    with np.errstate(all="ignore"):
        middle, spread = train.mean(axis=0), train.std(axis=0)
        low, high = middle - _CLIPPED * spread, middle + _CLIPPED * spread
        first, second = np.clip(train, low, high), np.clip(validation, low, high)
        spread = first.std(axis=0)
        deviations = np.abs(first.mean(axis=0) - second.mean(axis=0)) / spread
        error = np.sqrt(1 / len(first) + (second.std(axis=0) / spread) ** 2 / len(second))
        errors = deviations / error
    known = np.isfinite(deviations) & np.isfinite(errors)
    if not known.any():
        return None
    shifted = known & (deviations >= SHIFTED_DEVIATIONS) & (errors >= SHIFTED_ERRORS)
    index = int(np.argmax(np.where(shifted if shifted.any() else known, deviations, -1.0)))
    name = names[index] if len(names) == train.shape[1] else f"feature {index * stride}"
    return Shift(name, float(deviations[index]), float(errors[index]), int(shifted.sum()))


def labels_of(targets: Structure, classes: int) -> _Labels | None:
    """The class of each example, int64 ``[examples]``; ``None`` if they have no single class, or are not in memory."""
    arrays = in_memory(targets)
    if not classes or arrays is None or len(arrays) > 1:
        return None
    array = arrays[0][:_MAX_LABELS]
    if array.ndim == 2 and array.shape[1] == classes > 1:  # one-hot
        return np.argmax(array, axis=1).astype(np.int64) if (np.sum(array, axis=1) == 1).all() else None
    if array.size != len(array) or array.dtype.kind not in "iubf":
        return None
    flat = array.reshape(-1)
    whole = array.dtype.kind != "f" or bool(np.all(flat == np.floor(flat)))  # NaN is not equal to itself
    return flat.astype(np.int64) if whole else None


def class_counts(labels: _Labels | None, classes: int) -> tuple[int, ...]:
    """Number of examples of each class; empty if unknown, or with too many classes."""
    if labels is None or not 0 < classes <= _MAX_CLASSES:
        return ()
    known = labels[(labels >= 0) & (labels < classes)]
    return tuple(np.bincount(known, minlength=classes).tolist())


def class_runs(labels: _Labels | None) -> float | None:
    """Share of examples that have the class of the example before; ``None`` for fewer than two, or without classes."""
    if labels is None or len(labels) < 2:
        return None
    return float(np.mean(labels[1:] == labels[:-1]))


def target_numbers(targets: Structure) -> npt.NDArray[np.float64] | None:
    """The target of each example, float64 ``[examples]``, if it is one number with a point; else ``None``."""
    arrays = in_memory(targets)
    if arrays is None or len(arrays) > 1 or arrays[0].dtype.kind != "f" or arrays[0].ndim > 2:
        return None
    array = arrays[0]
    return array.reshape(-1).astype(np.float64) if array.size == len(array) else None


def share_not_finite(targets: Structure) -> float | None:
    """Share of target values that are NaN or infinite; ``None`` if they are not numbers with a point."""
    arrays = [array for array in in_memory(targets) or [] if array.dtype.kind == "f" and array.size]
    return float(np.mean([1.0 - np.isfinite(array).mean() for array in arrays])) if arrays else None


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
    """Some examples."""

    inputs: npt.NDArray[np.float32] | None
    """Their numbers, float32 ``[examples, features]``; ``None`` if inputs have none."""
    targets: list[npt.NDArray[Any]]
    """The arrays of their targets, ``[examples, ...]``."""
    stride: int
    """Every ``stride``-th feature is in ``inputs``."""
    features: int
    """Numbers of an example."""

    def __len__(self) -> int:
        return len(self.inputs) if self.inputs is not None else len(self.targets[0]) if self.targets else 0


def some_rows(count: int, limit: int) -> Rows:
    """Rows of ``count`` in order, at most ``limit``: all, or some at random."""
    if count <= limit:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).choice(count, limit, replace=False))


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
