"""TensorFlow Serving's protocol over gRPC: ``PredictionService``."""

from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.structure import ArraySpec
from accel_engine.errors import ModelError
from accel_engine.inference.runtime import Arrays
from accel_engine.protobuf import MalformedError, Message, bytes_field, integer_field, text_field
from accel_engine.service_client.grpc_channel import GrpcChannel
from accel_engine.service_client.rest_v1 import SIGNATURE
from accel_engine.service_client.service_runtime import ServiceRuntime, example_spec
from accel_engine.service_client.transport import ServiceError

SERVICE = "tensorflow.serving.PredictionService"

_TYPES = {
    1: "float32",
    2: "float64",
    3: "int32",
    4: "uint8",
    5: "int16",
    6: "int8",
    7: "string",
    9: "int64",
    10: "bool",
    17: "uint16",
    19: "float16",
    22: "uint32",
    23: "uint64",
}
"""NumPy's name of each of TensorFlow's types, by its number."""

_NUMBERS = {name: number for number, name in _TYPES.items()}

_FLOATS = {"float32": (5, "<f4"), "float64": (6, "<f8")}
_INTEGERS = {"int64": 10, "bool": 11, "float16": 13, "uint32": 16, "uint64": 17}
"""The field with the values of a type, where it is not 7, which has those of small integers."""


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
        self._spec = bytes_field(1, text_field(1, model) + text_field(3, SIGNATURE))
        asked = bytes_field(1, text_field(1, model)) + text_field(2, "signature_def")
        try:
            answer = Message(channel.call(SERVICE, "GetModelMetadata", asked))
            packed = _entries(answer, 2)["signature_def"]
            signature = _entries(Message(b"".join(packed.data(2)[-1:])), 1)[SIGNATURE]
            self.inputs, self.outputs = (
                {name: _described(each) for name, each in sorted(_entries(signature, number).items())}
                for number in (1, 2)
            )
        except (KeyError, MalformedError) as error:
            raise ServiceError(f"{model} does not describe the signature {SIGNATURE}") from error
        self.version = str(answer.message(1).message(2).integer(1) or "")

    def prepare(self, inputs: Arrays) -> bytes:
        """The message of a request."""
        parts = [self._spec]
        for name, array in inputs.items():
            dtype = self.inputs[name].dtype
            sides = b"".join(bytes_field(2, integer_field(1, side)) for side in array.shape)
            tensor = integer_field(1, _NUMBERS[dtype]) + bytes_field(2, sides)
            if dtype == "string":
                texts = array.reshape(-1).tolist()
                values = (each if isinstance(each, bytes) else str(each).encode() for each in texts)
                tensor += b"".join(bytes_field(8, each) for each in values)
            else:
                tensor += bytes_field(4, array.astype(np.dtype(dtype).newbyteorder("<"), copy=False).tobytes())
            parts.append(bytes_field(2, text_field(1, name) + bytes_field(2, tensor)))
        return b"".join(parts)

    def send(self, request: bytes) -> bytes:
        """See :meth:`ServiceRuntime.send`."""
        return self._channel.call(SERVICE, "Predict", request)

    def parse(self, answer: bytes) -> dict[str, npt.NDArray[Any]]:
        """See :meth:`ServiceRuntime.parse`."""
        try:
            return {name: _array(each) for name, each in _entries(Message(answer), 1).items()}
        except (MalformedError, ValueError, KeyError) as error:
            raise ModelError(f"the answer is no message of the protocol: {error}") from error


def _entries(message: Message, number: int) -> dict[str, Message]:
    """A map from texts to messages."""
    return {each.text(1): each.message(2) for each in message.messages(number)}


def _described(info: Message) -> ArraySpec:
    """The spec of an example from a ``TensorInfo``."""
    shape = info.message(3)
    if shape.integer(3):
        raise MalformedError("a tensor has no shape")
    return example_spec(_sides(shape), _TYPES[info.integer(2) or 0])


def _sides(shape: Message) -> list[int]:
    return [each.integer(1) or 0 for each in shape.messages(2)]


def _array(tensor: Message) -> npt.NDArray[Any]:
    """The array of a ``TensorProto``."""
    dtype, shape, raw = _TYPES[tensor.integer(1) or 0], tuple(_sides(tensor.message(2))), tensor.data(4)
    if dtype == "string":
        found = np.empty(len(tensor.data(8)), object)
        found[:] = tensor.data(8)
    elif raw and raw[-1]:
        found = np.frombuffer(raw[-1], np.dtype(dtype).newbyteorder("<")).astype(dtype)
    elif dtype in _FLOATS:
        number, kind = _FLOATS[dtype]
        found = np.frombuffer(b"".join(tensor.data(number)), kind).astype(dtype)
    else:
        values = np.array(tensor.integers(_INTEGERS.get(dtype, 7)), np.int64)
        found = values.astype(np.uint16).view(np.float16) if dtype == "float16" else values.astype(dtype)
    return found.reshape(shape)
