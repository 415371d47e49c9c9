"""Snapshots of the values that a script logs, which the recorder thread converts later.

A tensor may still be computed on its device: to convert it at once would make the script wait. So values that cannot
change are kept without a copy, and others are copied. A PyTorch tensor can change. Parameters, which optimizers change
in place, images and histograms are copied on their device. Other tensors, such as losses, are not copied: one that
has changed when it is converted has no value.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.errors import DataError, format_error
from accel_engine.private_names import pytorch_names
from accel_engine.run.store.series_names import MAX_ELEMENTS

PLAIN = frozenset(
    {bool, int, float, *(kind for kind in np.sctypeDict.values() if issubclass(kind, np.number | np.bool_))}
)
"""Types of scalars that cannot change."""

_IMMUTABLE = frozenset({"jax", "jaxlib", "tensorflow"})
"""Packages whose tensors cannot change; their variables have an ``assign``."""

_NUMERIC = "buif"
"""Kinds of NumPy types: booleans, integers and floats."""


@dataclass(frozen=True, slots=True)
class _PyTorchTensor:
    """A tensor and its version; it may share its memory with the script's."""

    tensor: Any
    version: int | None


@dataclass(frozen=True, slots=True)
class _Unreadable:
    """A value that could not be read, and why."""

    reason: str


def snapshot_value(value: Any, convert: Callable[[Any], Any] = np.array, *, copies: bool = False) -> Any:
    """Take a snapshot of a value; never raises an :class:`Exception`.

    Args:
        value: A number, an array, a tensor or a variable of any framework, or a mapping, list or tuple of these.
        convert: Converts other values at once.
        copies: Whether to copy every tensor that can change.
    """
    if type(value) in PLAIN:
        return value
    try:
        return _snapshot(value, convert, copies)
    except Exception as error:  # noqa: BLE001 (of the value's own library)
        return _Unreadable(format_error(error))


def snapshot_array(value: Any, name: str = "value") -> npt.NDArray[Any]:
    """Convert a snapshot to an array of booleans, integers or floats; this may wait for its device.

    Args:
        value: The snapshot.
        name: The script's name for it, for errors.

    Raises:
        Exception: The value is not numeric, or has changed since the snapshot.
    """
    if isinstance(value, _Unreadable):
        raise DataError(value.reason)
    if isinstance(value, _PyTorchTensor):
        array = _array_of_pytorch(value.tensor)
        if pytorch_names.tensor_version(value.tensor) != value.version:  # afterwards: it may change meanwhile
            number = f" or {name}.item()" if array.size == 1 else ""
            raise DataError(
                f"the tensor was changed in place after it was logged: log {name}.detach().clone(){number} instead"
            )
    elif isinstance(value, list):
        array = np.asarray([snapshot_array(each, name) for each in value])
    else:
        # np.asarray takes no TensorFlow scalar of type bfloat16.
        array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    if array.dtype.kind == "V":  # a type of ml_dtypes, such as bfloat16
        array = array.astype(np.float32)
    if array.dtype.kind not in _NUMERIC:
        raise DataError(f"{array.dtype} is not a type of numbers")
    return array


def _snapshot(value: Any, convert: Callable[[Any], Any], copies: bool) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy()
    if value is None or isinstance(value, str | bytes):
        raise DataError(f"{type(value).__name__} is not a number")
    if isinstance(value, Mapping):
        return {key: snapshot_value(each, convert, copies=copies) for key, each in value.items()}
    if isinstance(value, list | tuple):
        if len(value) > MAX_ELEMENTS:
            return np.array(value)
        return [snapshot_value(each, convert, copies=copies) for each in value]
    if hasattr(value, "assign"):
        return np.array(value)
    if hasattr(value, "detach"):
        tensor = value.detach()  # without the graph of its gradients, which takes memory
        if copies or _is_parameter(value) or pytorch_names.tensor_version(tensor) is None:
            tensor = tensor.clone()
        return _PyTorchTensor(tensor, pytorch_names.tensor_version(tensor))
    if type(value).__module__.partition(".")[0] in _IMMUTABLE:
        return value
    if hasattr(value, "__array__") or not hasattr(value, "__float__"):
        return convert(value)
    return float(value)


def _is_parameter(tensor: Any) -> bool:
    return bool(getattr(tensor, "requires_grad", False) and tensor.is_leaf)


def _array_of_pytorch(tensor: Any) -> npt.NDArray[Any]:
    on_host = tensor.cpu()
    try:
        return np.asarray(on_host)
    except TypeError:  # NumPy has no such type: bfloat16
        return np.asarray(on_host.float())
