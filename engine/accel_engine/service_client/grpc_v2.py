"""The Open Inference Protocol (version 2) over gRPC."""

from typing import Any

import numpy.typing as npt

from accel_engine.errors import ModelError
from accel_engine.inference.runtime import Arrays
from accel_engine.model_server.protocols import CONTENTS, DATATYPES, INFERENCE, to_bytes
from accel_engine.service_client.grpc_channel import GrpcChannel
from accel_engine.service_client.service_runtime import ServiceRuntime, example_spec
from accel_engine.service_client.tensor_values import numpy_name, tensor_from_bytes, tensor_from_values


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
        server = channel.ask(INFERENCE, "ServerMetadata")
        self.server = f"{server.name} {server.version}".strip()
        described = channel.ask(INFERENCE, "ModelMetadata", name=model, version=version)
        self.model = model or described.name
        self.version = version or "".join(described.versions[-1:])
        self.platform = described.platform
        self.inputs, self.outputs = (
            {each.name: example_spec(each.shape, numpy_name(each.datatype)) for each in tensors}
            for tensors in (described.inputs, described.outputs)
        )

    def prepare(self, inputs: Arrays) -> bytes:
        """The message of a request."""
        tensors = [(name, array, self.inputs[name].dtype) for name, array in inputs.items()]
        return self._channel.request(
            *(INFERENCE, "ModelInfer"),
            model_name=self.model,
            model_version=self._version,
            inputs=[
                {"name": name, "shape": array.shape, "datatype": DATATYPES[dtype]} for name, array, dtype in tensors
            ],
            raw_input_contents=[to_bytes(array, dtype) for _, array, dtype in tensors],
        )

    def send(self, request: bytes) -> bytes:
        """See :meth:`ServiceRuntime.send`."""
        return self._channel.call(INFERENCE, "ModelInfer", request)

    def parse(self, answer: bytes) -> dict[str, npt.NDArray[Any]]:
        """See :meth:`ServiceRuntime.parse`."""
        message = self._channel.parsed(INFERENCE, "ModelInfer", answer)
        raw, found = message.raw_output_contents, {}
        if raw and len(raw) != len(message.outputs):
            raise ModelError(f"the answer has {len(message.outputs)} outputs, and raw bytes of {len(raw)}")
        for place, each in enumerate(message.outputs):
            dtype = numpy_name(each.datatype)
            if raw:
                found[each.name] = tensor_from_bytes(raw[place], dtype, each.shape)
            elif dtype in CONTENTS:
                found[each.name] = tensor_from_values(getattr(each.contents, CONTENTS[dtype]), dtype, each.shape)
            else:
                raise ModelError(f"an output of the type {dtype} needs raw bytes, which the answer has not")
        return found
