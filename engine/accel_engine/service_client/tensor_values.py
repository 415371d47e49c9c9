"""The tensors of services as arrays: from raw bytes, and from and to JSON."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.structure import decoded_texts
from accel_engine.errors import ModelError
from accel_engine.model_server import protocols

_NUMPY_NAMES = {datatype: name for name, datatype in protocols.DATATYPES.items()}


def numpy_name(datatype: str) -> str:
    """NumPy's name of a data type of the Open Inference Protocol; ``string`` for texts.

    Raises:
        ModelError: The data type is unknown.
    """
    if datatype not in _NUMPY_NAMES:
        raise ModelError(f"the service has tensors of the type {datatype}, which this program does not know")
    return _NUMPY_NAMES[datatype]


def tensor_from_bytes(data: bytes, name: str, shape: Sequence[int]) -> npt.NDArray[Any]:
    """A tensor from its raw bytes.

    Args:
        data: The raw bytes.
        name: NumPy's name of its type; ``string`` for texts, which the tensor has as bytes.
        shape: Its shape.

    Raises:
        ModelError: The number of bytes does not fit the type and the shape.
    """
    return _tensor(lambda: protocols.from_bytes(data, name), name, shape)


def tensor_from_values(values: Sequence[Any], name: str, shape: Sequence[int]) -> npt.NDArray[Any]:
    """A tensor from the values of a message's field.

    Args:
        values: The values, flat.
        name: NumPy's name of its type; ``string`` for texts.
        shape: Its shape.

    Raises:
        ModelError: The number of values does not fit the shape, or a value does not fit the type.
    """
    return _tensor(lambda: protocols.texts_array(values) if name == "string" else np.array(values, name), name, shape)


def _tensor(make: Callable[[], npt.NDArray[Any]], name: str, shape: Sequence[int]) -> npt.NDArray[Any]:
    try:
        return make().reshape(tuple(shape))
    except (ValueError, OverflowError) as error:
        raise ModelError(
            f"an output is not a tensor of the type {name} and the shape {list(shape)}: {error}"
        ) from error


def tensor_to_json(array: npt.NDArray[Any], *, nan_as_null: bool = False) -> list[Any]:
    """The values of a tensor, flat, for JSON; bytes are decoded to texts.

    Values of float16 and float32 have as few digits as identify them.

    Args:
        array: The tensor.
        nan_as_null: Whether NaN becomes ``null``; otherwise it stays ``NaN``, which TensorFlow Serving takes.
    """
    if array.dtype.kind in "OSU":
        return decoded_texts(array)
    is_short = array.dtype.kind == "f" and array.dtype.itemsize < 8
    values = list(map(float, array.astype(str).reshape(-1).tolist())) if is_short else array.reshape(-1).tolist()
    if nan_as_null and array.dtype.kind == "f":
        return [None if value != value else value for value in values]
    return values


def tensor_from_json(values: Any, name: str, shape: Sequence[int] | None = None) -> npt.NDArray[Any]:
    """A tensor from the values of JSON, flat or nested.

    Args:
        values: Numbers, texts or ``null`` for NaN, in lists.
        name: NumPy's name of its type; ``string`` for texts.
        shape: Its shape; ``None`` to use the shape of the lists.

    Raises:
        ModelError: The values do not fit the type or the shape.
    """
    try:
        array = np.array(values, object if name == "string" else None)
        if array.dtype == object and name != "string":
            array = np.array(values, "float64")  # null becomes NaN
        found = array if name == "string" else array.astype(name)
        return found if shape is None else found.reshape(tuple(shape))
    except (ValueError, TypeError) as error:
        raise ModelError(f"an output is not a tensor of the type {name}: {error}") from error
