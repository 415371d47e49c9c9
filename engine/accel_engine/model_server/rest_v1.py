"""TensorFlow Serving's REST API, version 1: predictions, status and metadata of a model."""

from typing import Any

import numpy as np

from accel_engine.data.structure import ArraySpec
from accel_engine.errors import AccelError
from accel_engine.inference.runtime import Arrays
from accel_engine.model_server import tensors
from accel_engine.model_server.back_end_process import Outputs
from accel_engine.model_server.files import picture
from accel_engine.model_server.protocols import METADATA, TENSORFLOW_TYPES
from accel_engine.model_server.request_error import RequestError
from accel_engine.model_server.service import Service
from accel_engine.models.model_files import SIGNATURE


def inputs_of(body: Any, service: Service) -> tuple[Arrays, bool]:
    """Read the inputs of a request of TensorFlow Serving's protocol.

    Args:
        body: Its parsed JSON.
        service: What the model takes.

    Returns:
        The inputs, and whether the answer is by row, as ``instances`` are.

    Raises:
        RequestError: The inputs do not fit the model; the message says what does.
    """
    if not isinstance(body, dict):
        raise RequestError('the body must be a JSON object with "instances" or "inputs"')
    if body.get("signature_name", SIGNATURE) not in (SIGNATURE, ""):
        raise RequestError(f"the model has the signature {SIGNATURE} only")
    if ("instances" in body) == ("inputs" in body):
        raise RequestError('the body must have "instances", a list of examples, or "inputs", whole columns, not both')
    specs, is_by_row = service.specs, "instances" in body
    given = _columns(body["instances"], specs) if is_by_row else _named(body["inputs"], specs)
    tensors.check_names(given, specs)
    found = {name: _array(name, given[name], spec, service) for name, spec in specs.items()}
    tensors.check_same_length(found)
    return found, is_by_row


def _columns(instances: Any, specs: dict[str, ArraySpec]) -> dict[str, Any]:
    """The values of each input, of all instances."""
    if not isinstance(instances, list) or not instances:
        raise RequestError("instances is a list with at least one example")
    are_named = [isinstance(each, dict) and not tensors.is_base64(each) for each in instances]
    if not any(are_named):
        if len(specs) > 1:
            raise RequestError(f"each of the instances is an object with the inputs {', '.join(specs)}")
        return {next(iter(specs)): instances}
    if not all(are_named):
        raise RequestError("the instances must be either all objects with inputs by name, or all values")
    for place, each in enumerate(instances):
        if each.keys() != specs.keys():
            try:
                tensors.check_names(each, specs)
            except RequestError as error:
                raise RequestError(f"instance {place}: {error}") from None
    return {name: [each[name] for each in instances] for name in specs}


def _named(inputs: Any, specs: dict[str, ArraySpec]) -> dict[str, Any]:
    if isinstance(inputs, dict) and not tensors.is_base64(inputs):
        return inputs
    if len(specs) > 1:
        raise RequestError(f"inputs is an object with {', '.join(specs)}")
    return {next(iter(specs)): inputs}


def _array(name: str, values: Any, spec: ArraySpec, service: Service) -> tensors.Array:
    if spec.dtype != "string" and isinstance(values, list) and any(map(tensors.is_base64, values)):
        return np.stack([_image(name, each, spec, service) for each in values])
    return tensors.array_of(name, values, spec)


def _image(name: str, value: Any, spec: ArraySpec, service: Service) -> tensors.Array:
    """An example from the bytes of an image file."""
    form = service.files
    if form.kind != "images" or not tensors.is_base64(value):
        raise RequestError(f"input {name} takes numbers ({spec}), not bytes")
    try:
        return picture(tensors.bytes_of(name, value), spec, form)[0]
    except RequestError:
        raise
    except AccelError as error:
        raise RequestError(f"input {name}: {error}") from None


def answer(outputs: Outputs, *, is_by_row: bool) -> dict[str, Any]:
    """The body of an answer.

    Args:
        outputs: The outputs, ``[examples, ...]``.
        is_by_row: Whether it has an entry for each example, not an array for each output.
    """
    single = next(iter(outputs.values())) if len(outputs) == 1 else None
    if not is_by_row:
        columns = {name: tensors.to_json(each) for name, each in outputs.items()}
        return {"outputs": columns if single is None else next(iter(columns.values()))}
    if single is not None:
        return {"predictions": tensors.to_json(single)}
    rows = {
        name: tensors.plain_texts(each) if each.dtype.kind in "OUS" else tensors.to_json(each)
        for name, each in outputs.items()
    }
    count = len(next(iter(rows.values())))
    return {"predictions": [{name: each[row] for name, each in rows.items()} for row in range(count)]}


def status(service: Service, *, is_ready: bool) -> dict[str, Any]:
    """The status of the model."""
    state = {"state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}
    if not is_ready:
        state = {"state": "LOADING", "status": {"error_code": "UNAVAILABLE", "error_message": "it is being started"}}
    return {"model_version_status": [{"version": service.version, **state}]}


def metadata(service: Service) -> dict[str, Any]:
    """The signature of the model."""
    signature = {
        "inputs": {each.name: _tensor_info(each.name, each.spec) for each in service.inputs},
        "outputs": {each.name: _tensor_info(each.name, each.spec) for each in service.outputs},
        "method_name": "tensorflow/serving/predict",
    }
    return {
        "model_spec": {"name": service.name, "signature_name": "", "version": service.version},
        "metadata": {METADATA: {METADATA: {SIGNATURE: signature}}},
    }


def _tensor_info(name: str, spec: ArraySpec) -> dict[str, Any]:
    sides = [{"size": str(-1 if side is None else side), "name": ""} for side in (None, *spec.shape)]
    return {"dtype": TENSORFLOW_TYPES[spec.dtype], "tensor_shape": {"dim": sides, "unknown_rank": False}, "name": name}
