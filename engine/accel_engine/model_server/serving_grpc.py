"""TensorFlow Serving's protocol over gRPC: predictions, metadata and status of the model, without TensorFlow.

What takes paths or ``tf.train.Example`` is left out: ``HandleReloadConfigRequest``, ``Classify``, ``Regress``,
``MultiInference``.
"""

import math
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
from google.protobuf.json_format import ParseDict

from accel_engine.data.structure import ArraySpec
from accel_engine.inference.runtime import Arrays
from accel_engine.model_server import open_inference, rest_v1
from accel_engine.model_server.application import ServingState
from accel_engine.model_server.grpc_messages import TYPE_NAMES, TYPE_NUMBERS, message
from accel_engine.model_server.protocols import METADATA, MODEL, PREDICTION, TENSORFLOW_TYPES, VALUES, bytes_of_texts
from accel_engine.model_server.request_error import RequestError
from accel_engine.model_server.served_model import ServedModel
from accel_engine.model_server.service import Service
from accel_engine.model_server.tensors import Array, check_names, check_same_length, checked, typed, values_of
from accel_engine.models.model_files import SIGNATURE


def answers(state: ServingState) -> dict[str, dict[str, Callable[[Any], Awaitable[dict[str, Any]]]]]:
    """Functions that answer the methods of the services: each takes a request, and gives the fields of its answer."""

    async def predict(request: Any) -> dict[str, Any]:
        model = _model(state, request.model_spec)
        service, signature = model.service, request.model_spec.signature_name
        if signature not in ("", SIGNATURE):
            raise RequestError(f"the model has the signature {SIGNATURE} only, not {signature!r:.100}")
        with state.holding(request.ByteSize()), model.held():
            wanted = [open_inference.check_output(each, service) for each in request.output_filter]
            found = await state.infer(model, inputs_of(request, service, state.limits.body))
        specs = service.output_specs
        tensors = {name: to_tensor(found[name], specs[name]) for name in dict.fromkeys(wanted or specs)}
        spec = {"name": service.name, "version": {"value": int(service.version)}}
        return {"outputs": tensors, "model_spec": {**spec, "signature_name": SIGNATURE}}

    async def metadata(request: Any) -> dict[str, Any]:
        service = _model(state, request.model_spec).service
        if list(request.metadata_field) != [METADATA]:
            raise RequestError(f"metadata_field is {METADATA}, the only one that there is")
        described = rest_v1.metadata(service)
        signatures = ParseDict(described["metadata"][METADATA], message("tensorflow.serving.SignatureDefMap")())
        packed = message("google.protobuf.Any")(
            type_url=f"type.googleapis.com/{signatures.DESCRIPTOR.full_name}", value=signatures.SerializeToString()
        )
        spec = {"name": service.name, "version": {"value": int(service.version)}}
        return {"model_spec": spec, "metadata": {METADATA: packed}}

    async def status(request: Any) -> dict[str, Any]:
        found = rest_v1.status(_model(state, request.model_spec).service, is_ready=not state.problem)
        answer = ParseDict(found, message("tensorflow.serving.GetModelStatusResponse")())
        return {"model_version_status": answer.model_version_status}

    return {PREDICTION: {"Predict": predict, "GetModelMetadata": metadata}, MODEL: {"GetModelStatus": status}}


def _model(state: ServingState, spec: Any) -> ServedModel:
    """The model that a request names."""
    if not spec.name:
        raise RequestError("model_spec has no name of a model")
    if spec.version_label:
        raise RequestError(f"there is no label {spec.version_label[:100]!r}: versions have no labels here", 404)
    return state.served(spec.name, str(spec.version.value) if spec.HasField("version") else "")


def inputs_of(request: Any, service: Service, limit: int) -> Arrays:
    """Read the inputs of a call of TensorFlow Serving's protocol.

    Args:
        request: A ``PredictRequest``.
        service: What the model takes.
        limit: Bytes of a tensor at most: a single value may stand for many.

    Raises:
        RequestError: The inputs do not fit the model; the message says what does.
    """
    check_names(request.inputs, service.specs)
    found = {}
    for name, spec in service.specs.items():
        found[name] = checked(name, to_array(name, request.inputs[name], spec, limit), spec)
    check_same_length(found)
    return found


def to_array(name: str, tensor: Any, spec: ArraySpec, limit: int) -> Array:
    """The array of a ``TensorProto``, ``[examples, ...]``.

    As in TensorFlow, the last value is repeated where values are too few; without values, all are zeros or empty texts.

    Args:
        name: The input's name, for messages.
        tensor: The tensor.
        spec: What the model takes.
        limit: Bytes of the array at most.

    Raises:
        RequestError: The tensor does not fit the model, or is too large; the message says what is right.
    """
    wanted = TENSORFLOW_TYPES[spec.dtype]
    if tensor.dtype != TYPE_NUMBERS[wanted]:
        given = TYPE_NAMES.get(tensor.dtype, f"of the number {tensor.dtype}")
        raise RequestError(f"input {name} must have the type {wanted}, not {given}")
    shape = open_inference.shape_of(name, [each.size for each in tensor.tensor_shape.dim])
    if tensor.tensor_content:
        if spec.dtype == "string":
            raise RequestError(f"input {name} takes texts in string_val, not in tensor_content")
        return open_inference.of_bytes(name, tensor.tensor_content, shape, spec)
    values, count = getattr(tensor, VALUES[spec.dtype]), math.prod(shape)
    if len(values) > count:
        raise RequestError(f"input {name} has {len(values):,} values, but its shape {list(shape)} needs {count:,}")
    if count * (8 if spec.dtype == "string" else np.dtype(spec.dtype).itemsize) > limit:
        raise RequestError(f"input {name} is larger than {limit:,} bytes in its shape {list(shape)}", 413)
    return _filled(_typed(name, values, spec), count).reshape(shape)


def _typed(name: str, values: Any, spec: ArraySpec) -> Array:
    """The values of a tensor, flat, in the type that the model takes."""
    if spec.dtype == "float16":  # the bits of each
        return typed(name, np.array(values, np.int64), ArraySpec((), "uint16")).view(np.float16)
    return values_of(name, values, spec)


def _filled(array: Array, count: int) -> Array:
    if len(array) == count:
        return array
    last = array[-1:] if len(array) else np.array([""], object) if array.dtype == object else np.zeros(1, array.dtype)
    return np.concatenate([array, np.repeat(last, count - len(array))])


def to_tensor(array: Array, spec: ArraySpec) -> Any:
    """The ``TensorProto`` of an output, with its values in the field of their type, as TensorFlow Serving has them."""
    flat = array.reshape(-1)
    if spec.dtype == "string":
        values: Any = bytes_of_texts(flat)
    else:
        values = (flat.view(np.uint16) if spec.dtype == "float16" else flat).tolist()
    return message("tensorflow.TensorProto")(
        dtype=TENSORFLOW_TYPES[spec.dtype],
        tensor_shape={"dim": [{"size": side} for side in array.shape]},
        **{VALUES[spec.dtype]: values},
    )
