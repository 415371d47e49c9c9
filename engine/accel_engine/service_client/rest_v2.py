"""The Open Inference Protocol (version 2) over HTTP, with tensors as JSON or in its binary extension."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import numpy.typing as npt

from accel_engine.data.structure import ArraySpec
from accel_engine.errors import ModelError
from accel_engine.inference.runtime import Arrays
from accel_engine.model_server.protocols import BINARY, DATATYPES, JSON_LENGTH, to_bytes
from accel_engine.service_client.service_runtime import ServiceRuntime, example_spec
from accel_engine.service_client.tensor_values import numpy_name, tensor_from_bytes, tensor_from_json, tensor_to_json
from accel_engine.service_client.transport import HttpAnswer, ServiceError, Transport, UnreachableError


class RestV2(ServiceRuntime):
    """A model of a service that speaks the Open Inference Protocol over HTTP.

    Args:
        transport: The server.
        model: The model's name.
        version: The version; empty for the one that the server chooses.
        binary: Whether tensors are sent and wanted as raw bytes.

    Raises:
        ServiceError: There is no such model, or no such service.
    """

    def __init__(self, transport: Transport, model: str, version: str = "", *, binary: bool = False) -> None:
        self.name = "v2 REST, binary" if binary else "v2 REST"
        self._transport, self._binary = transport, binary
        self.model = model
        self._path = f"/v2/models/{quote(model, safe='')}" + (f"/versions/{quote(version, safe='')}" if version else "")
        described = transport.get(self._path).json()
        try:
            self.inputs = {each["name"]: _spec(each) for each in described["inputs"]}
            self.outputs = {each["name"]: _spec(each) for each in described["outputs"]}
        except (KeyError, TypeError, ValueError) as error:
            raise ServiceError(f"{self._path} does not describe a model's inputs and outputs") from error
        self.platform = str(described.get("platform", ""))
        self.version = version or str((described.get("versions") or [""])[-1])
        self.server = server_name(transport)

    def prepare(self, inputs: Arrays) -> tuple[bytes, dict[str, str]]:
        """The body and the headers of a request."""
        tensors: list[dict[str, Any]] = []
        raw: list[bytes] = []
        for name, array in inputs.items():
            dtype = self.inputs[name].dtype
            tensor: dict[str, Any] = {"name": name, "shape": list(array.shape), "datatype": DATATYPES[dtype]}
            if self._binary:
                raw.append(to_bytes(array, dtype))
                tensor["parameters"] = {"binary_data_size": len(raw[-1])}
            else:
                tensor["data"] = tensor_to_json(array, nan_as_null=self.nan_as_null)
            tensors.append(tensor)
        asked: dict[str, Any] = {"inputs": tensors}
        if self._binary:
            asked["parameters"] = {"binary_data_output": True}
        head = json.dumps(asked).encode()
        headers = {"Content-Type": "application/octet-stream" if raw else "application/json"}
        if raw:
            headers[JSON_LENGTH] = str(len(head))
        return head + b"".join(raw), headers

    def send(self, request: tuple[bytes, dict[str, str]]) -> HttpAnswer:
        """See :meth:`ServiceRuntime.send`."""
        return self._transport.send("POST", f"{self._path}/infer", *request)

    def parse(self, answer: HttpAnswer) -> dict[str, npt.NDArray[Any]]:
        """See :meth:`ServiceRuntime.parse`."""
        length = answer.headers.get(JSON_LENGTH.lower())
        head = answer.body[: int(length)] if length and length.isdecimal() else answer.body
        at, found = len(head), {}
        try:
            for each in json.loads(head)["outputs"]:
                size, dtype = (each.get("parameters") or {}).get("binary_data_size"), numpy_name(each["datatype"])
                if size is None:
                    found[each["name"]] = tensor_from_json(each["data"], dtype, each["shape"])
                else:
                    data, at = answer.body[at : at + size], at + size
                    found[each["name"]] = tensor_from_bytes(data, dtype, each["shape"])
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(f"the answer has no outputs of the protocol: {error}") from error
        return found


def _spec(described: Mapping[str, Any]) -> ArraySpec:
    return example_spec(described["shape"], numpy_name(described["datatype"]))


def server_name(transport: Transport) -> str:
    """The name and the version of the server; empty if its answer has none.

    Raises:
        UnreachableError: The server does not answer.
    """
    try:
        found = transport.get("/v2").json()
        return f"{found.get('name', '')} {found.get('version', '')}".strip()
    except UnreachableError:
        raise
    except (ServiceError, AttributeError):
        return ""


def has_binary(transport: Transport) -> bool:
    """Whether the server says that it has the binary extension."""
    try:
        return BINARY in transport.get("/v2").json().get("extensions", ())
    except (ServiceError, AttributeError, TypeError):
        return False
