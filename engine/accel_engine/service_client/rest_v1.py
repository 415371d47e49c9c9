"""TensorFlow Serving's protocol over HTTP (version 1)."""

import base64
import json
from typing import Any
from urllib.parse import quote

import numpy.typing as npt

from accel_engine.data.structure import ArraySpec
from accel_engine.errors import ModelError
from accel_engine.inference.runtime import Arrays
from accel_engine.model_server.protocols import METADATA, TENSORFLOW_TYPES
from accel_engine.models.model_files import SIGNATURE
from accel_engine.service_client.service_runtime import ServiceRuntime, example_spec
from accel_engine.service_client.tensor_values import tensor_from_json, tensor_to_json
from accel_engine.service_client.transport import HttpAnswer, ServiceError, Transport

NUMPY_NAMES = {name: numpy for numpy, name in TENSORFLOW_TYPES.items()} | {"DT_BFLOAT16": "float32"}
"""NumPy's names of TensorFlow's types; ``string`` for texts."""


class RestV1(ServiceRuntime):
    """A model of a service that speaks TensorFlow Serving's protocol over HTTP.

    Args:
        transport: The server.
        model: The model's name.
        version: The version; empty for the one that the server chooses.

    Raises:
        ServiceError: There is no such model, or it does not tell its inputs and outputs.
    """

    name = "v1 REST"
    platform = "tensorflow_serving"

    def __init__(self, transport: Transport, model: str, version: str = "") -> None:
        self._transport = transport
        self.model = model
        self._path = f"/v1/models/{quote(model, safe='')}" + (f"/versions/{quote(version, safe='')}" if version else "")
        described = transport.get(f"{self._path}/metadata").json()
        try:
            signature = described["metadata"][METADATA][METADATA][SIGNATURE]
            self.inputs = {name: _spec(each) for name, each in sorted(signature["inputs"].items())}
            self.outputs = {name: _spec(each) for name, each in sorted(signature["outputs"].items())}
            self.version = str(described.get("model_spec", {}).get("version", version))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ServiceError(f"{self._path}/metadata does not describe the signature {SIGNATURE}") from error

    def prepare(self, inputs: Arrays) -> bytes:
        """The body of a request."""
        return json.dumps(
            {"inputs": {name: _nested(array, self.nan_as_null) for name, array in inputs.items()}}
        ).encode()

    def send(self, request: bytes) -> HttpAnswer:
        """See :meth:`ServiceRuntime.send`."""
        headers = {"Content-Type": "application/json"}
        return self._transport.send("POST", f"{self._path}:predict", request, headers)

    def parse(self, answer: HttpAnswer) -> dict[str, npt.NDArray[Any]]:
        """See :meth:`ServiceRuntime.parse`."""
        found = answer.json()
        if not isinstance(found, dict) or "outputs" not in found:
            raise ModelError("the answer has no outputs")
        outputs = found["outputs"]
        if not isinstance(outputs, dict):  # of a model with one output
            outputs = {next(iter(self.outputs)): outputs}
        return {
            name: tensor_from_json(_texts(outputs[name]) if spec.dtype == "string" else outputs[name], spec.dtype)
            for name, spec in self.outputs.items()
            if name in outputs
        }


def _nested(array: npt.NDArray[Any], nan_as_null: bool) -> Any:
    """The values of a tensor in lists of its shape."""
    values = iter(tensor_to_json(array, nan_as_null=nan_as_null))

    def lists(sides: tuple[int, ...]) -> Any:
        return [lists(sides[1:]) for _ in range(sides[0])] if sides else next(values)

    return lists(array.shape)


def _texts(values: Any) -> Any:
    """Texts, of which some are ``{"b64": ...}``."""
    if isinstance(values, list):
        return [_texts(each) for each in values]
    return base64.b64decode(values["b64"]) if isinstance(values, dict) and "b64" in values else values


def _spec(described: dict[str, Any]) -> ArraySpec:
    shape = described["tensor_shape"]
    if shape.get("unknown_rank"):
        raise ValueError("a tensor has no shape")
    return example_spec([int(side["size"]) for side in shape.get("dim", [])], NUMPY_NAMES[described["dtype"]])
