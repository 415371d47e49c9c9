"""The data types of the Open Inference Protocol, and its tensors as bytes and as JSON.

Source: https://github.com/kserve/open-inference-protocol, and Triton's binary tensor data extension.
"""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.errors import ModelError

NUMPY_NAMES = {
    "BOOL": "bool",
    "UINT8": "uint8",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "FP16": "float16",
    "FP32": "float32",
    "FP64": "float64",
    "BYTES": "string",
}
"""NumPy's name of each data type; ``string`` for texts."""

DATATYPES = {name: datatype for datatype, name in NUMPY_NAMES.items()}
"""The data type of each of NumPy's names."""

_LENGTH = struct.Struct("<I")


def numpy_name(datatype: str) -> str:
    """NumPy's name of a data type.

    Raises:
        ModelError: There is none.
    """
    if datatype not in NUMPY_NAMES:
        raise ModelError(f"the service has tensors of the type {datatype}, which this program does not know")
    return NUMPY_NAMES[datatype]


def to_bytes(array: npt.NDArray[Any], datatype: str) -> bytes:
    """The raw bytes of a tensor, little-endian; each text has its length before it."""
    if datatype != "BYTES":
        return array.astype(np.dtype(NUMPY_NAMES[datatype]).newbyteorder("<"), copy=False).tobytes()
    texts = [text if isinstance(text, bytes) else str(text).encode() for text in array.reshape(-1).tolist()]
    return b"".join(_LENGTH.pack(len(text)) + text for text in texts)


def from_bytes(data: bytes, datatype: str, shape: Sequence[int]) -> npt.NDArray[Any]:
    """A tensor from its raw bytes.

    Raises:
        ModelError: They are too few or too many.
    """
    name = numpy_name(datatype)
    try:
        if datatype != "BYTES":
            return np.frombuffer(data, np.dtype(name).newbyteorder("<")).reshape(tuple(shape)).astype(name)
        texts, at = [], 0
        while at < len(data):
            (length,) = _LENGTH.unpack_from(data, at)
            at += 4 + length
            if at > len(data):
                raise ValueError("a text is cut")
            texts.append(data[at - length : at])
        found = np.empty(len(texts), object)
        found[:] = texts
        return found.reshape(tuple(shape))
    except (ValueError, struct.error) as error:
        raise ModelError(
            f"an output is no tensor of the type {datatype} and the shape {list(shape)}: {error}"
        ) from error


def to_json(array: npt.NDArray[Any], *, nan_as_null: bool = False) -> list[Any]:
    """The values of a tensor as JSON has them; texts of bytes are decoded.

    Float32 numbers are as short as they can be, so that the other side reads the same ones.

    Args:
        array: The tensor.
        nan_as_null: Whether what is not a number is ``null``; otherwise ``NaN``, which TensorFlow Serving takes.
    """
    if array.dtype.kind in "OSU":
        return [text.decode() if isinstance(text, bytes) else str(text) for text in array.reshape(-1).tolist()]
    is_short = array.dtype.kind == "f" and array.dtype.itemsize < 8
    values = list(map(float, array.astype(str).reshape(-1).tolist())) if is_short else array.reshape(-1).tolist()
    if nan_as_null and array.dtype.kind == "f":
        return [None if value != value else value for value in values]
    return values


def from_json(values: Any, name: str, shape: Sequence[int] | None = None) -> npt.NDArray[Any]:
    """A tensor from the values of JSON, flat or nested.

    Args:
        values: Numbers, texts or ``null`` for what is not a number, in lists.
        name: NumPy's name of its type; ``string`` for texts.
        shape: Its shape; ``None`` for the lists' own.

    Raises:
        ModelError: They are no such tensor.
    """
    try:
        array = np.array(values, object if name == "string" else None)
        if array.dtype == object and name != "string":
            array = np.array(values, "float64")  # null becomes NaN
        found = array if name == "string" else array.astype(name)
        return found if shape is None else found.reshape(tuple(shape))
    except (ValueError, TypeError) as error:
        raise ModelError(f"an output is no tensor of the type {name}: {error}") from error
