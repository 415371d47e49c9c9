"""TensorFlow Serving's protocol over gRPC: ``PredictionService``."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.structure import ArraySpec
from accel_engine.errors import ModelError
from accel_engine.inference.runtime import Arrays
from accel_engine.model_server.grpc_messages import TYPE_NAMES, DecodeError, message
from accel_engine.model_server.protocols import (
    INFERENCE,
    METADATA,
    PREDICTION,
    TENSORFLOW_TYPES,
    VALUES,
    bytes_of_texts,
    to_bytes,
)
from accel_engine.models.model_files import SIGNATURE
from accel_engine.service_client.grpc_channel import GrpcChannel
from accel_engine.service_client.rest_v1 import NUMPY_NAMES
from accel_engine.service_client.service_runtime import ServiceRuntime, example_spec
from accel_engine.service_client.tensor_values import tensor_from_bytes, tensor_from_values
from accel_engine.service_client.transport import ServiceError


class GrpcV1(ServiceRuntime):
    """A model of a service that speaks TensorFlow Serving's protocol over gRPC.

    Args:
        channel: The server.
        model: The model's name.

    Raises:
        ServiceError: There is no such model, or it does not tell its inputs and outputs.
    """

    name = "v1 gRPC"
    platform = "tensorflow_serving"

    def __init__(self, channel: GrpcChannel, model: str) -> None:
        if not model:  # which its messages must have
            raise ServiceError("TensorFlow Serving's protocol needs the name of a model")
        self._channel, self.model = channel, model
        answer = channel.ask(PREDICTION, "GetModelMetadata", model_spec={"name": model}, metadata_field=[METADATA])
        signatures = message("tensorflow.serving.SignatureDefMap")()
        try:
            signatures.ParseFromString(answer.metadata[METADATA].value)
            signature = signatures.signature_def[SIGNATURE]
            self.inputs, self.outputs = map(_described, (signature.inputs, signature.outputs))
        except (KeyError, ValueError, DecodeError) as error:
            raise ServiceError(f"{model} does not describe the signature {SIGNATURE}") from error
        self.version = str(answer.model_spec.version.value or "")
        with suppress(ServiceError):  # TensorFlow Serving does not speak the other protocol
            self.platform = channel.ask(INFERENCE, "ModelMetadata", name=model).platform or self.platform

    def prepare(self, inputs: Arrays) -> bytes:
        """The message of a request."""
        tensors = {name: _tensor(array, self.inputs[name].dtype) for name, array in inputs.items()}
        spec = {"name": self.model, "signature_name": SIGNATURE}
        return self._channel.request(PREDICTION, "Predict", model_spec=spec, inputs=tensors)

    def send(self, request: bytes) -> bytes:
        """See :meth:`ServiceRuntime.send`."""
        return self._channel.call(PREDICTION, "Predict", request)

    def parse(self, answer: bytes) -> dict[str, npt.NDArray[Any]]:
        """See :meth:`ServiceRuntime.parse`."""
        outputs = self._channel.parsed(PREDICTION, "Predict", answer).outputs
        return {name: _array(tensor) for name, tensor in outputs.items()}


def _described(tensors: Mapping[str, Any]) -> dict[str, ArraySpec]:
    """The specs of an example from the tensors of a signature."""
    if not tensors or any(each.tensor_shape.unknown_rank for each in tensors.values()):
        raise ValueError("a tensor has no shape")
    return {
        name: example_spec(_sides(each), NUMPY_NAMES[TYPE_NAMES[each.dtype]]) for name, each in sorted(tensors.items())
    }


def _sides(tensor: Any) -> list[int]:
    return [each.size for each in tensor.tensor_shape.dim]


def _tensor(array: npt.NDArray[Any], dtype: str) -> dict[str, Any]:
    """The fields of a ``TensorProto``."""
    is_text = dtype == "string"
    values = {"string_val": bytes_of_texts(array)} if is_text else {"tensor_content": to_bytes(array, dtype)}
    return {
        "dtype": TENSORFLOW_TYPES[dtype],
        "tensor_shape": {"dim": [{"size": side} for side in array.shape]},
        **values,
    }


def _array(tensor: Any) -> npt.NDArray[Any]:
    """The array of a ``TensorProto``.

    Raises:
        ModelError: The message has no array of a known type.
    """
    dtype, shape = NUMPY_NAMES.get(TYPE_NAMES.get(tensor.dtype, "")), _sides(tensor)
    if dtype is None:
        raise ModelError(f"an output is of the type {tensor.dtype}, which this program does not know")
    if tensor.tensor_content:
        return tensor_from_bytes(tensor.tensor_content, dtype, shape)
    values: Any = getattr(tensor, VALUES[dtype])
    if dtype == "float16":  # the bits of each
        return tensor_from_values(values, "uint16", shape).view(np.float16)
    return tensor_from_values(values, dtype, shape)
