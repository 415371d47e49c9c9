"""The OpenAPI description of a server, with the model's own inputs and outputs."""

from typing import Any

from accel_engine.data.structure import ArraySpec
from accel_engine.model_server.open_inference import datatype_of
from accel_engine.model_server.served_model import Limits
from accel_engine.model_server.service import Service
from accel_engine.version import __version__

_ERRORS = {
    "400": "The request is wrong; the message says what is right",
    "401": "The token is missing or wrong",
    "413": "The request is too large",
    "429": "The server is busy; Retry-After says when to try again",
    "503": "The model is being started, or cannot compute",
    "504": "It took too long",
}


def description(service: Service, limits: Limits) -> dict[str, Any]:
    """The description.

    Args:
        service: The model.
        limits: What the server takes.
    """
    name = service.name
    v1 = {"type": "object", "properties": {"instances": _list(_example(service)), "inputs": _columns(service)}}
    v2 = {
        "type": "object",
        "required": ["inputs"],
        "properties": {
            "id": {"type": "string"},
            "inputs": _list({"oneOf": [_tensor(each.name, each.spec) for each in service.inputs]}),
            "outputs": _list({"type": "object", "properties": {"name": {"enum": list(service.output_specs)}}}),
        },
    }
    file = {"schema": {"type": "string", "format": "binary"}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": name,
            "version": service.version,
            "description": f"A model of run {service.run}, served by accel-tui {__version__}. A request has at most "
            f"{limits.body:,} bytes and {limits.queue:,} examples.",
        },
        "paths": {
            f"/v2/models/{name}/infer": {
                "post": _operation("Open Inference Protocol", {"application/json": {"schema": v2}})
            },
            f"/v1/models/{name}:predict": {
                "post": _operation("TensorFlow Serving", {"application/json": {"schema": v1}})
            },
            "/predict": {"post": _operation("Predict the examples of a file", {"application/octet-stream": file})},
            f"/v2/models/{name}": {"get": _operation("Metadata")},
            f"/v1/models/{name}": {"get": _operation("Status")},
            f"/v1/models/{name}/metadata": {"get": _operation("Metadata, as in TensorFlow Serving")},
            "/livez": {"get": _operation("Whether the server runs")},
            "/readyz": {"get": _operation("Whether it answers requests")},
            "/metrics": {"get": _operation("Metrics of Prometheus")},
        },
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _operation(summary: str, content: dict[str, Any] | None = None) -> dict[str, Any]:
    answers = {"200": {"description": "The answer"}}
    if content is None:
        return {"summary": summary, "responses": answers}
    answers |= {code: {"description": about} for code, about in _ERRORS.items()}
    return {"summary": summary, "requestBody": {"required": True, "content": content}, "responses": answers}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _values(spec: ArraySpec) -> dict[str, Any]:
    """The schema of an example's values, nested."""
    types = {"string": "string", "bool": "boolean"}
    kind = types.get(spec.dtype) or ("integer" if "int" in spec.dtype else "number")
    schema: dict[str, Any] = {"type": kind}
    for side in reversed(spec.shape):
        schema = {**_list(schema), **({"minItems": side, "maxItems": side} if side is not None else {})}
    return schema


def _example(service: Service) -> dict[str, Any]:
    if len(service.inputs) == 1:
        return _values(service.inputs[0].spec)
    return {"type": "object", "properties": {each.name: _values(each.spec) for each in service.inputs}}


def _columns(service: Service) -> dict[str, Any]:
    if len(service.inputs) == 1:
        return _list(_values(service.inputs[0].spec))
    return {"type": "object", "properties": {each.name: _list(_values(each.spec)) for each in service.inputs}}


def _tensor(name: str, spec: ArraySpec) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["name", "shape", "datatype"],
        "properties": {
            "name": {"const": name},
            "shape": {**_list({"type": "integer"}), "minItems": len(spec.shape) + 1, "maxItems": len(spec.shape) + 1},
            "datatype": {"const": datatype_of(spec)},
            "data": {"type": "array"},
            "parameters": {"type": "object", "properties": {"binary_data_size": {"type": "integer"}}},
        },
    }
