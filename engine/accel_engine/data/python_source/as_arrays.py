"""Converts what Python functions give as examples to NumPy arrays, as Keras' ``fit`` would take it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.structure import Batch, Structure
from accel_engine.errors import DataError

PARTS = Batch("inputs", "targets", "sample weights")
"""Names of the parts in messages."""


def as_batch(value: Any) -> Batch:
    """Convert ``x``, ``(x,)``, ``(x, y)`` or ``(x, y, sample_weight)``; a list of arrays is like a tuple.

    Raises:
        DataError: It has another form, or an array cannot be used.
    """
    parts = tuple(value) if isinstance(value, tuple) or is_tuple(value) else (value,)
    if not 1 <= len(parts) <= 3:
        raise DataError(f"expected x, (x, y) or (x, y, sample_weight), not {len(parts)} parts")
    return Batch(*(as_structure(part, name) for part, name in zip(parts, PARTS, strict=False)))


def as_structure(value: Any, name: str) -> Structure:
    """Convert an array, or a tuple, list or dictionary of arrays; lists become tuples.

    Raises:
        DataError: An array cannot be used, for example because it is ragged.
    """
    if value is None:
        return None
    if isinstance(value, Mapping):
        return {str(key): as_structure(part, f"{name}/{key}") for key, part in value.items()}
    if is_tuple(value):
        return tuple(as_structure(part, f"{name}/{index}") for index, part in enumerate(value))
    return _as_array(value, name)


def is_tuple(value: Any) -> bool:
    """Whether a tuple or list has parts; otherwise, one of numbers or texts is an array."""
    return isinstance(value, tuple | list) and any(map(_is_part, value))


def _is_part(value: Any) -> bool:
    if isinstance(value, Mapping) or is_tuple(value):
        return True
    return not isinstance(value, list | tuple | str | bytes) and getattr(value, "shape", ()) != ()


def _as_array(value: Any, name: str) -> npt.NDArray[Any]:
    if isinstance(value, tf.RaggedTensor | tf.SparseTensor):
        kind = "ragged" if isinstance(value, tf.RaggedTensor) else "sparse"
        raise DataError(f"{name}: a {kind} tensor; make it dense, e.g. with to_tensor() or tf.sparse.to_dense()")
    if hasattr(value, "detach"):  # a PyTorch tensor, perhaps on a GPU
        value = value.detach().cpu()
    if hasattr(value, "toarray") and hasattr(value, "nnz"):
        raise DataError(f"{name}: a sparse matrix; make it dense with toarray()")
    if hasattr(value, "to_numpy"):  # pandas and others
        value = value.to_numpy()
    try:
        array = np.asarray(value)
    except ValueError as error:  # lists of different lengths
        raise DataError(f"{name}: {_RAGGED}") from error
    if array.dtype == object and any(isinstance(item, list | tuple | np.ndarray) for item in array.flat):
        raise DataError(f"{name}: {_RAGGED}")
    return array.astype(np.float32) if array.dtype.kind == "f" and array.dtype != np.float32 else array


_RAGGED = "examples of different lengths; pad them to one length, e.g. with keras.utils.pad_sequences"
