"""The Open Inference Protocol (version 2) over gRPC."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.structure import ArraySpec
from accel_engine.errors import ModelError
from accel_engine.inference.runtime import Arrays
from accel_engine.protobuf import MalformedError, Message, bytes_field, text_field, varint
from accel_engine.service_client.datatypes import DATATYPES, from_bytes, numpy_name, to_bytes
from accel_engine.service_client.grpc_channel import GrpcChannel
from accel_engine.service_client.service_runtime import ServiceRuntime, example_spec

SERVICE = "inference.GRPCInferenceService"

_FLOATS = {"FP32": (6, "<f4"), "FP64": (7, "<f8")}
_INTEGERS = {
    "BOOL": 1,
    "INT8": 2,
    "INT16": 2,
    "INT32": 2,
    "INT64": 3,
    "UINT8": 4,
    "UINT16": 4,
    "UINT32": 4,
    "UINT64": 5,
}
"""The field with the values of a type, where an answer has no raw bytes."""


class GrpcV2(ServiceRuntime):
    """A model of a service that speaks the Open Inference Protocol over gRPC.

    Args:
        channel: The server.
        model: The model's name; empty for the only one of this program's own server.
        version: The version; empty for the one that the server chooses.

    Raises:
        ServiceError: There is no such model, or no such service.
    """

    name = "v2 gRPC"

    def __init__(self, channel: GrpcChannel, model: str, version: str = "") -> None:
        self._channel = channel
        self._version = version
        server = Message(self._call("ServerMetadata", b""))
        self.server = f"{server.text(1)} {server.text(2)}".strip()
        named = text_field(1, model) + (text_field(2, version) if version else b"")
        described = Message(self._call("ModelMetadata", named))
        self.model = model or described.text(1)
        self.version = version or b"".join(described.data(2)[-1:]).decode(errors="replace")
        self.platform = described.text(3)
        self.inputs = dict(map(_spec, described.messages(4)))
        self.outputs = dict(map(_spec, described.messages(5)))

    def prepare(self, inputs: Arrays) -> bytes:
        """The message of a request."""
        parts = [text_field(1, self.model)] + ([text_field(2, self._version)] if self._version else [])
        raw = []
        for name, array in inputs.items():
            datatype = DATATYPES[self.inputs[name].dtype]
            shape = b"".join(map(varint, array.shape))
            parts.append(bytes_field(5, text_field(1, name) + text_field(2, datatype) + bytes_field(3, shape)))
            raw.append(bytes_field(7, to_bytes(array, datatype)))
        return b"".join((*parts, *raw))

    def send(self, request: bytes) -> bytes:
        """See :meth:`ServiceRuntime.send`."""
        return self._call("ModelInfer", request)

    def parse(self, answer: bytes) -> dict[str, npt.NDArray[Any]]:
        """See :meth:`ServiceRuntime.parse`."""
        try:
            message = Message(answer)
            raw = message.data(6)
            found = {}
            for place, each in enumerate(message.messages(5)):
                name, datatype, shape = each.text(1), each.text(2), each.integers(3)
                if raw:
                    found[name] = from_bytes(raw[place], datatype, shape)
                else:
                    found[name] = _contents(each.message(5), datatype, shape)
        except (MalformedError, IndexError, ValueError) as error:
            raise ModelError(f"the answer is no message of the protocol: {error}") from error
        return found

    def _call(self, method: str, request: bytes) -> bytes:
        return self._channel.call(SERVICE, method, request)


def _contents(message: Message, datatype: str, shape: Sequence[int]) -> npt.NDArray[Any]:
    """A tensor whose values are in fields of their types."""
    name = numpy_name(datatype)
    if datatype == "BYTES":
        found = np.empty(len(message.data(8)), object)
        found[:] = message.data(8)
        return found.reshape(tuple(shape))
    if datatype in _FLOATS:
        number, kind = _FLOATS[datatype]
        return np.frombuffer(b"".join(message.data(number)), kind).astype(name).reshape(tuple(shape))
    if datatype not in _INTEGERS:
        raise ModelError(f"an output of the type {datatype} needs raw bytes, which the answer has not")
    return np.array(message.integers(_INTEGERS[datatype])).astype(name).reshape(tuple(shape))


def _spec(message: Message) -> tuple[str, ArraySpec]:
    return message.text(1), example_spec(message.integers(3), numpy_name(message.text(2)))
