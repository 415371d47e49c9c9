"""The Open Inference Protocol, version 2: its types and messages, for REST with the binary extension, and for gRPC."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from accel_engine.data.structure import ArraySpec
from accel_engine.formats import target_name
from accel_engine.inference.runtime import Arrays
from accel_engine.model_server.back_end_process import Outputs
from accel_engine.model_server.protocols import BINARY, DATATYPES, OWN_SERVER, from_bytes, to_bytes
from accel_engine.model_server.request_error import RequestError
from accel_engine.model_server.service import Service, Tensor
from accel_engine.model_server.tensors import (
    Array,
    array_of,
    check_names,
    check_same_length,
    checked,
    texts_of,
    to_json,
)
from accel_engine.version import __version__


def datatype_of(spec: ArraySpec) -> str:
    """The protocol's name of a type."""
    return DATATYPES.get(spec.dtype, spec.dtype.upper())


def inputs_of(body: Any, binary: bytes, service: Service) -> tuple[Arrays, dict[str, bool], str]:
    """Read what a REST request asks for.

    Args:
        body: Its parsed JSON.
        binary: The binary data after it.
        service: What the model takes.

    Returns:
        The inputs; the outputs that are wanted, and whether as binary data; and the request's id.

    Raises:
        RequestError: The inputs or outputs do not fit the model; the message says what does.
    """
    if not isinstance(body, dict) or not isinstance(body.get("inputs"), list):
        raise RequestError('the body must be a JSON object with "inputs", a list of tensors')
    start, tensors = 0, body["inputs"]

    def read(place: int, name: str, shape: tuple[int, ...], spec: ArraySpec) -> Array:
        nonlocal start
        size = _parameters(tensors[place]).get("binary_data_size")
        if size is None:
            return _of_json(name, tensors[place].get("data"), shape, spec)
        if type(size) is not int or not 0 <= size <= len(binary) - start:
            raise RequestError(
                f"input {name}: binary_data_size is {size!r:.50}, and {len(binary) - start} bytes follow"
            )
        start += size
        return of_bytes(name, binary[start - size : start], shape, spec)

    described = ((_name_of(each), each.get("shape"), each.get("datatype")) for each in tensors)
    given = gathered(described, read, service)
    if start != len(binary):
        raise RequestError(f"{len(binary) - start:,} bytes of binary data belong to no input")
    identifier = body.get("id", "")
    return given, _wanted(body, service), identifier if isinstance(identifier, str) else str(identifier)


Read = Callable[[int, str, tuple[int, ...], ArraySpec], Array]
"""Reads the values of a tensor: its place in the request, its name, its shape, and what the model takes."""


def gathered(described: Iterable[tuple[str, Any, Any]], read: Read, service: Service) -> Arrays:
    """Read and check the tensors of a request.

    Args:
        described: The name, the shape and the datatype that the request gives for each tensor.
        read: Reads a tensor's values; called in order.
        service: What the model takes.

    Raises:
        RequestError: The inputs do not fit the model; the message says what does.
    """
    given = dict[str, Array]()
    for place, (name, shape, datatype) in enumerate(described):
        spec = service.specs.get(name)
        if spec is None or name in given:
            check_names(dict.fromkeys([*given, name]), service.specs)
            raise RequestError(f"input {name} is given twice")
        sides = shape_of(name, shape)
        if datatype != datatype_of(spec):
            raise RequestError(f"input {name} must have the datatype {datatype_of(spec)}, not {datatype!r:.50}")
        given[name] = checked(name, read(place, name, sides, spec), spec)
    check_names(given, service.specs)
    check_same_length(given)
    return given


def _name_of(tensor: Any) -> str:
    name = tensor.get("name") if isinstance(tensor, dict) else None
    if not isinstance(name, str):
        raise RequestError("each of the inputs must be an object with name, shape, datatype and data")
    return name


def _parameters(values: Mapping[str, Any]) -> Mapping[str, Any]:
    found = values.get("parameters")
    return found if isinstance(found, dict) else {}


def shape_of(name: str, shape: Any) -> tuple[int, ...]:
    """The shape of an input, with the batch.

    Raises:
        RequestError: The shape is empty, or not a list of whole numbers from 0 to 2³¹ - 1.
    """
    if not isinstance(shape, list) or not shape or not all(type(side) is int and 0 <= side < 1 << 31 for side in shape):
        raise RequestError(f"input {name}: shape must be a list of whole numbers, first the number of examples")
    return tuple(shape)


def _of_json(name: str, data: Any, shape: tuple[int, ...], spec: ArraySpec) -> Array:
    """An array of JSON values, flat or nested, with as many values as the shape has."""
    if not isinstance(data, list):
        raise RequestError(f"input {name}: data must be a list of values")
    array = array_of(name, data, ArraySpec((None,) * (_depth(data) - 1), spec.dtype))
    return shaped(name, array, shape)


def _depth(data: Any) -> int:
    depth = 0
    while isinstance(data, list):
        depth, data = depth + 1, data[0] if data else None
    return depth


def shaped(name: str, array: Array, shape: tuple[int, ...]) -> Array:
    """Reshape an array to the shape in a request.

    Raises:
        RequestError: The array has another number of values.
    """
    count = 1
    for side in shape:
        count *= side
    if array.size != count:
        raise RequestError(f"input {name} has {array.size:,} values, but its shape {list(shape)} needs {count:,}")
    return array.reshape(shape)


def of_bytes(name: str, content: bytes, shape: tuple[int, ...], spec: ArraySpec) -> Array:
    """Read an array of binary data.

    Raises:
        RequestError: The data has another size than the shape and the type need, or has texts that are not UTF-8.
    """
    try:
        values = from_bytes(content, spec.dtype)
    except ValueError as error:
        raise RequestError(f"input {name}: {error}") from None
    return shaped(name, texts_of(name, values) if spec.dtype == "string" else values, shape)


def _wanted(body: Mapping[str, Any], service: Service) -> dict[str, bool]:
    """The outputs that are wanted, and whether as binary data."""
    binary = bool(_parameters(body).get("binary_data_output"))
    asked = body.get("outputs")
    if not asked:
        return {each.name: binary for each in service.outputs}
    if not isinstance(asked, list) or not all(isinstance(each, dict) for each in asked):
        raise RequestError("outputs must be a list of objects with a name")
    return {
        check_output(each.get("name"), service): bool(_parameters(each).get("binary_data", binary)) for each in asked
    }


def check_output(name: Any, service: Service) -> str:
    """Return the name of an output.

    Raises:
        RequestError: The model has no output of this name.
    """
    if not isinstance(name, str) or name not in service.output_specs:
        raise RequestError(f"there is no output {name!r:.100}; the outputs are {', '.join(service.output_specs)}")
    return name


def answer(
    outputs: Outputs, wanted: Mapping[str, bool], identifier: str, service: Service
) -> tuple[dict[str, Any], list[bytes]]:
    """The JSON of an answer, and the binary data that follows it."""
    tensors, binary = list[dict[str, Any]](), list[bytes]()
    for name, is_binary in wanted.items():
        array, spec = outputs[name], service.output_specs[name]
        tensor: dict[str, Any] = {"name": name, "shape": list(array.shape), "datatype": datatype_of(spec)}
        if is_binary:
            binary.append(to_bytes(array, spec.dtype))
            tensor["parameters"] = {"binary_data_size": len(binary[-1])}
        else:
            tensor["data"] = to_json(array.reshape(-1))
        tensors.append(tensor)
    lead = {"id": identifier} if identifier else {}
    return {"model_name": service.name, "model_version": service.version, **lead, "outputs": tensors}, binary


def server_metadata() -> dict[str, Any]:
    """The server's name, version and extensions, as the protocol wants them."""
    return {"name": OWN_SERVER, "version": __version__, "extensions": [BINARY]}


def metadata(service: Service) -> dict[str, Any]:
    """The model's name, version, platform, inputs and outputs, as the protocol wants them."""
    runtimes = {"onnx": "onnxruntime", "tflite": "litert", "savedmodel": "tensorflow"}
    model = service.model
    return {
        "name": service.name,
        "versions": [service.version],
        "platform": f"{runtimes.get(model.format, 'other')}_{target_name(model.format, model.quantize)}",
        "inputs": [_described(each) for each in service.inputs],
        "outputs": [_described(each) for each in service.outputs],
    }


def _described(tensor: Tensor) -> dict[str, Any]:
    shape = [-1 if side is None else side for side in (None, *tensor.shape)]
    return {"name": tensor.name, "datatype": datatype_of(tensor.spec), "shape": shape}
