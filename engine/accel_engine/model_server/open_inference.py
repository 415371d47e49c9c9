"""The Open Inference Protocol, version 2: its types and messages, over REST with the binary extension."""

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from accel_engine.data.structure import ArraySpec
from accel_engine.inference.runtime import Arrays
from accel_engine.model_server.back_end_process import Outputs
from accel_engine.model_server.request_error import RequestError
from accel_engine.model_server.service import Service, Tensor
from accel_engine.model_server.tensors import Array, array_of, as_text, check_names, check_same_length, checked, to_json

DATATYPES = {
    "bool": "BOOL",
    **{f"{sign}int{bits}": f"{sign.upper()}INT{bits}" for sign in ("u", "") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": f"FP{bits}" for bits in (16, 32, 64)},
    "string": "BYTES",
}
"""The protocol's names of NumPy's types."""

BINARY_HEADER = "inference-header-content-length"
"""The header with the number of bytes of JSON, after which binary data follows."""

_LENGTH = struct.Struct("<I")
"""What precedes each text in binary data: its bytes."""


def datatype_of(spec: ArraySpec) -> str:
    """The protocol's name of a type."""
    return DATATYPES.get(spec.dtype, spec.dtype.upper())


def inputs_of(body: Any, binary: bytes, service: Service) -> tuple[Arrays, dict[str, bool], str]:
    """The inputs of a request.

    Args:
        body: Its parsed JSON.
        binary: The binary data after it.
        service: What the model takes.

    Returns:
        The inputs; the outputs that are wanted, and whether as binary data; and the request's id.

    Raises:
        RequestError: It has no such inputs; what would be right.
    """
    if not isinstance(body, dict) or not isinstance(body.get("inputs"), list):
        raise RequestError('the body is a JSON object with "inputs", a list of tensors')
    given, start = dict[str, Array](), 0
    for tensor in body["inputs"]:
        name = _text_field(tensor, "name")
        spec = service.specs.get(name)
        if spec is None or name in given:
            check_names(dict.fromkeys([*given, name]), service.specs)
            raise RequestError(f"input {name} is there twice")
        shape = shape_of(name, tensor.get("shape"))
        check_datatype(name, tensor.get("datatype"), spec)
        size = _parameters(tensor).get("binary_data_size")
        if size is None:
            array = _of_json(name, tensor.get("data"), shape, spec)
        else:
            if type(size) is not int or not 0 <= size <= len(binary) - start:
                raise RequestError(
                    f"input {name}: binary_data_size is {size!r:.50}, and {len(binary) - start} bytes follow"
                )
            array = from_bytes(name, binary[start : start + size], shape, spec)
            start += size
        given[name] = checked(name, array, spec)
    if start != len(binary):
        raise RequestError(f"{len(binary) - start:,} bytes of binary data are of no input")
    check_names(given, service.specs)
    check_same_length(given)
    identifier = body.get("id", "")
    return given, _wanted(body, service), identifier if isinstance(identifier, str) else str(identifier)


def _text_field(tensor: Any, name: str) -> str:
    value = tensor.get(name) if isinstance(tensor, dict) else None
    if not isinstance(value, str):
        raise RequestError(f"each of the inputs is an object with {name}, shape, datatype and data")
    return value


def _parameters(values: Mapping[str, Any]) -> Mapping[str, Any]:
    found = values.get("parameters")
    return found if isinstance(found, dict) else {}


def shape_of(name: str, shape: Any) -> tuple[int, ...]:
    """The shape of an input, with the batch.

    Raises:
        RequestError: It is none.
    """
    if not isinstance(shape, list) or not shape or not all(type(side) is int and 0 <= side < 1 << 31 for side in shape):
        raise RequestError(f"input {name}: shape is a list of whole numbers, first the number of examples")
    return tuple(shape)


def check_datatype(name: str, datatype: Any, spec: ArraySpec) -> None:
    """Raise if an input has another type than the model takes.

    Raises:
        RequestError: It has.
    """
    if datatype != datatype_of(spec):
        raise RequestError(f"input {name} has the datatype {datatype_of(spec)}, not {datatype!r:.50}")


def _of_json(name: str, data: Any, shape: tuple[int, ...], spec: ArraySpec) -> Array:
    """An array of values that are flat, or nested as its shape is."""
    if not isinstance(data, list):
        raise RequestError(f"input {name}: data is a list of values")
    array = array_of(name, data, ArraySpec((None,) * (_depth(data) - 1), spec.dtype))
    return shaped(name, array, shape)


def _depth(data: Any) -> int:
    depth = 0
    while isinstance(data, list):
        depth, data = depth + 1, data[0] if data else None
    return depth


def shaped(name: str, array: Array, shape: tuple[int, ...]) -> Array:
    """An array in the shape that a request says.

    Raises:
        RequestError: It has another number of values.
    """
    count = 1
    for side in shape:
        count *= side
    if array.size != count:
        raise RequestError(f"input {name} has {array.size:,} values, and its shape {list(shape)} is for {count:,}")
    return array.reshape(shape)


def from_bytes(name: str, content: bytes, shape: tuple[int, ...], spec: ArraySpec) -> Array:
    """An array of binary data.

    Raises:
        RequestError: It has another size than the shape says.
    """
    if spec.dtype == "string":
        return shaped(name, _texts_of(name, content), shape)
    dtype = np.dtype(spec.dtype)
    if len(content) % dtype.itemsize:
        raise RequestError(f"input {name} has {len(content):,} bytes, no multiple of {dtype.itemsize}")
    if spec.dtype == "bool" and max(content, default=0) > 1:
        raise RequestError(f"input {name} takes true and false, as 1 and 0")
    return shaped(name, np.frombuffer(content, dtype.newbyteorder("<")).astype(dtype, copy=False), shape)


def _texts_of(name: str, content: bytes) -> Array:
    texts, start = list[str](), 0
    while start < len(content):
        end = start + _LENGTH.size
        if end > len(content):
            raise RequestError(f"input {name}: the length of a text is cut")
        (size,) = _LENGTH.unpack_from(content, start)
        if end + size > len(content):
            raise RequestError(f"input {name}: a text is cut")
        texts.append(as_text(name, content[end : end + size]))
        start = end + size
    array = np.empty(len(texts), object)
    array[:] = texts
    return array


def _wanted(body: Mapping[str, Any], service: Service) -> dict[str, bool]:
    """The outputs that are wanted, and whether as binary data."""
    binary = bool(_parameters(body).get("binary_data_output"))
    asked = body.get("outputs")
    if not asked:
        return {each.name: binary for each in service.outputs}
    if not isinstance(asked, list) or not all(isinstance(each, dict) for each in asked):
        raise RequestError("outputs is a list of objects with a name")
    return {
        check_output(each.get("name"), service): bool(_parameters(each).get("binary_data", binary)) for each in asked
    }


def check_output(name: Any, service: Service) -> str:
    """The name of an output.

    Raises:
        RequestError: There is none of this name.
    """
    if name not in service.output_specs:
        raise RequestError(f"there is no output {name!r:.100}, but {', '.join(service.output_specs)}")
    found: str = name
    return found


def answer(
    outputs: Outputs, wanted: Mapping[str, bool], identifier: str, service: Service
) -> tuple[dict[str, Any], list[bytes]]:
    """The JSON of an answer, and the binary data that follows it."""
    tensors, binary = list[dict[str, Any]](), list[bytes]()
    for name, is_binary in wanted.items():
        array, spec = outputs[name], service.output_specs[name]
        tensor: dict[str, Any] = {"name": name, "shape": list(array.shape), "datatype": datatype_of(spec)}
        if is_binary:
            binary.append(to_bytes(array))
            tensor["parameters"] = {"binary_data_size": len(binary[-1])}
        else:
            tensor["data"] = to_json(array.reshape(-1))
        tensors.append(tensor)
    lead = {"id": identifier} if identifier else {}
    return {"model_name": service.name, "model_version": service.version, **lead, "outputs": tensors}, binary


def to_bytes(array: Array) -> bytes:
    """Binary data of an array."""
    if array.dtype.kind in "OUS":
        texts = [each if isinstance(each, bytes) else str(each).encode() for each in array.reshape(-1).tolist()]
        return b"".join(part for text in texts for part in (_LENGTH.pack(len(text)), text))
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()


def metadata(service: Service) -> dict[str, Any]:
    """The metadata of the model."""
    platforms = {"onnx": "onnxruntime_onnx", "tflite": "litert_tflite", "savedmodel": "tensorflow_savedmodel"}
    return {
        "name": service.name,
        "versions": [service.version],
        "platform": platforms.get(service.model.format, service.model.format),
        "inputs": [_described(each) for each in service.inputs],
        "outputs": [_described(each) for each in service.outputs],
    }


def _described(tensor: Tensor) -> dict[str, Any]:
    shape = [-1 if side is None else side for side in (None, *tensor.shape)]
    return {"name": tensor.name, "datatype": datatype_of(tensor.spec), "shape": shape}
