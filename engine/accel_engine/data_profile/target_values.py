"""The classes, or the numbers, that targets are."""

import numpy as np
import numpy.typing as npt

from accel_engine.data.structure import Structure
from accel_engine.data_profile.sampled_rows import in_memory

MAX_CLASSES = 1000
"""Classes up to which examples of each are counted."""

MAX_LABELS = 1 << 22
"""Examples that are counted, the first ones."""

Labels = npt.NDArray[np.int64]


def labels_of(targets: Structure, classes: int) -> Labels | None:
    """The class of each example, int64 ``[examples]``; ``None`` if they have no single class, or are not in memory."""
    arrays = in_memory(targets)
    if not classes or arrays is None or len(arrays) > 1:
        return None
    array = arrays[0][:MAX_LABELS]
    if array.ndim == 2 and array.shape[1] == classes > 1:  # one-hot
        return np.argmax(array, axis=1).astype(np.int64) if (np.sum(array, axis=1) == 1).all() else None
    if array.size != len(array) or array.dtype.kind not in "iubf":
        return None
    flat = array.reshape(-1)
    whole = array.dtype.kind != "f" or bool(np.all(flat == np.floor(flat)))  # NaN is not equal to itself
    return flat.astype(np.int64) if whole else None


def class_counts(labels: Labels | None, classes: int) -> tuple[int, ...]:
    """Number of examples of each class; empty if unknown, or with too many classes."""
    if labels is None or not 0 < classes <= MAX_CLASSES:
        return ()
    known = labels[(labels >= 0) & (labels < classes)]
    return tuple(np.bincount(known, minlength=classes).tolist())


def class_runs(labels: Labels | None) -> float | None:
    """Share of examples whose class is that of the one before; ``None`` for fewer than two."""
    if labels is None or len(labels) < 2:
        return None
    return float(np.mean(labels[1:] == labels[:-1]))


def numbers_of(targets: Structure) -> npt.NDArray[np.float64] | None:
    """The target of each example, float64 ``[examples]``, if it is one number with a point; else ``None``."""
    arrays = in_memory(targets)
    if arrays is None or len(arrays) > 1 or arrays[0].dtype.kind != "f" or arrays[0].ndim > 2:
        return None
    array = arrays[0]
    return array.reshape(-1).astype(np.float64) if array.size == len(array) else None


def share_not_finite(targets: Structure) -> float | None:
    """Share of target values that are NaN or infinite; ``None`` if they are no numbers with a point."""
    arrays = [array for array in in_memory(targets) or [] if array.dtype.kind == "f" and array.size]
    return float(np.mean([1.0 - np.isfinite(array).mean() for array in arrays])) if arrays else None
