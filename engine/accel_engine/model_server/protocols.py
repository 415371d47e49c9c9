"""Definitions that the server and clients share: names in the protocols, types of tensors, and values as bytes.

Sources: https://github.com/kserve/open-inference-protocol, Triton's binary tensor data extension, and TensorFlow
Serving's API.
"""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

OWN_SERVER = "accel-tui"
"""The name of this program's own server."""

BINARY = "binary_tensor_data"
"""The extension of the Open Inference Protocol with tensors as raw bytes, by the name in a server's metadata."""

JSON_LENGTH = "Inference-Header-Content-Length"
"""The header with the number of bytes of JSON, after which raw bytes follow."""

INFERENCE = "inference.GRPCInferenceService"
"""The service of the Open Inference Protocol over gRPC."""

PREDICTION, MODEL = "tensorflow.serving.PredictionService", "tensorflow.serving.ModelService"
"""The services of TensorFlow Serving over gRPC."""

METADATA = "signature_def"
"""The only field of TensorFlow Serving's metadata."""

_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("u", "") for bits in (8, 16, 32, 64))

DATATYPES = {
    "bool": "BOOL",
    **{name: name.upper() for name in _INTEGERS},
    **{f"float{bits}": f"FP{bits}" for bits in (16, 32, 64)},
    "string": "BYTES",
}
"""The Open Inference Protocol's names of NumPy's types; ``string`` for texts."""

TENSORFLOW_TYPES = {
    "bool": "DT_BOOL",
    **{name: f"DT_{name.upper()}" for name in _INTEGERS},
    "float16": "DT_HALF",
    "float32": "DT_FLOAT",
    "float64": "DT_DOUBLE",
    "string": "DT_STRING",
}
"""TensorFlow's names of NumPy's types; ``string`` for texts."""

CONTENTS = {
    "bool": "bool_contents",
    **dict.fromkeys(("int8", "int16", "int32"), "int_contents"),
    **dict.fromkeys(("uint8", "uint16", "uint32"), "uint_contents"),
    "int64": "int64_contents",
    "uint64": "uint64_contents",
    "float32": "fp32_contents",
    "float64": "fp64_contents",
    "string": "bytes_contents",
}
"""The field of ``InferTensorContents`` for each type; float16 has none."""

VALUES = {
    "bool": "bool_val",
    **dict.fromkeys(("uint8", "int8", "uint16", "int16", "int32"), "int_val"),
    "int64": "int64_val",
    "uint32": "uint32_val",
    "uint64": "uint64_val",
    "float16": "half_val",
    "float32": "float_val",
    "float64": "double_val",
    "string": "string_val",
}
"""The field of ``TensorProto`` for each type; float16 has the bits of each."""

_LENGTH = struct.Struct("<I")
"""Precedes each text in raw bytes: the number of its bytes."""


def bytes_of_texts(array: npt.NDArray[Any]) -> list[bytes]:
    """Each text of an array."""
    return [each if isinstance(each, bytes) else str(each).encode() for each in array.reshape(-1).tolist()]


def to_bytes(array: npt.NDArray[Any], dtype: str) -> bytes:
    """The raw bytes of an array, little-endian; each text has its length before it.

    Args:
        array: The array.
        dtype: NumPy's name of the type of the bytes; ``string`` for texts.
    """
    if dtype == "string":
        return b"".join(part for text in bytes_of_texts(array) for part in (_LENGTH.pack(len(text)), text))
    return np.ascontiguousarray(array, np.dtype(dtype).newbyteorder("<")).tobytes()


def from_bytes(content: bytes, dtype: str) -> npt.NDArray[Any]:
    """The values of raw bytes, flat; texts are bytes.

    Args:
        content: The raw bytes.
        dtype: NumPy's name of the type; ``string`` for texts.

    Raises:
        ValueError: The bytes are not values of this type.
    """
    if dtype == "string":
        return texts_array(_texts_of(content))
    wanted = np.dtype(dtype)
    if len(content) % wanted.itemsize:
        raise ValueError(f"{len(content):,} bytes are not a multiple of {wanted.itemsize}")
    if dtype == "bool" and max(content, default=0) > 1:
        raise ValueError("true and false must be 1 and 0")
    return np.frombuffer(content, wanted.newbyteorder("<")).astype(wanted, copy=False)


def texts_array(texts: Sequence[Any]) -> npt.NDArray[Any]:
    """An array of objects, ``[texts]``."""
    array = np.empty(len(texts), object)
    array[:] = texts
    return array


def _texts_of(content: bytes) -> list[bytes]:
    texts, start = list[bytes](), 0
    while start < len(content):
        end = start + _LENGTH.size
        if end > len(content):
            raise ValueError("the length of a text is cut")
        (size,) = _LENGTH.unpack_from(content, start)
        start = end + size
        if start > len(content):
            raise ValueError("a text is cut")
        texts.append(content[end:start])
    return texts
