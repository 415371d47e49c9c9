"""gRPC: the Open Inference Protocol, version 2, TensorFlow Serving's protocol, health checking and reflection."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2

from accel_engine.data.structure import ArraySpec
from accel_engine.errors import ModelError
from accel_engine.inference.runtime import Arrays
from accel_engine.model_server import open_inference, serving_grpc
from accel_engine.model_server.application import ServingState
from accel_engine.model_server.grpc_messages import POOL, methods
from accel_engine.model_server.protocols import CONTENTS, INFERENCE, MODEL, PREDICTION
from accel_engine.model_server.request_error import RequestError
from accel_engine.model_server.service import Service
from accel_engine.model_server.tensors import Array, values_of

CODES = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    404: grpc.StatusCode.NOT_FOUND,
    413: grpc.StatusCode.OUT_OF_RANGE,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    503: grpc.StatusCode.UNAVAILABLE,
    504: grpc.StatusCode.DEADLINE_EXCEEDED,
}
"""gRPC's codes for the statuses of :class:`RequestError`; ``UNKNOWN`` for others."""

_MESSAGE_ROOM = 1 << 16
"""Bytes of a message besides its tensors."""

CALLS = 512
"""Calls at once; further ones are refused."""

_HEALTH_SECONDS = 0.1
"""Seconds after which those who watch the health are told that it has changed, at most."""

Method = Callable[[Any], Awaitable[dict[str, Any]]]
"""Takes a request, and gives the fields of its answer."""

_COUNTED = {"ModelInfer": "grpc", "Predict": "grpc-v1"}
"""The methods whose calls are counted, and as what."""

_OPEN = ("ServerLive", "ServerReady")
"""The methods that need no token."""


class GrpcServer:
    """A gRPC server. Made by :meth:`start`.

    Attributes:
        port: The port that it listens on.
    """

    def __init__(self, server: Any, port: int, health_checks: "_Health") -> None:
        self.port = port
        self._server, self._health = server, health_checks
        self._following = asyncio.create_task(health_checks.follow())

    @classmethod
    async def start(cls, state: ServingState, host: str, port: int, tls: tuple[Path, Path] | None) -> "GrpcServer":
        """Listen.

        Args:
            state: What the server is doing.
            host: The address.
            port: The port; 0 for a free one.
            tls: PEM files with the certificates and the key; ``None`` for no TLS.

        Raises:
            ModelError: The port, or a file of TLS, cannot be used.
        """
        limit = state.limits.body + _MESSAGE_ROOM
        server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", limit),
                ("grpc.max_send_message_length", -1),
                ("grpc.so_reuseport", 0),
            ],
            maximum_concurrent_rpcs=CALLS,
        )
        answers = {INFERENCE: _open_inference(state), **serving_grpc.answers(state)}
        for service, functions in answers.items():
            handlers = {}
            for name, (request, response) in methods(service).items():
                handlers[name] = grpc.unary_unary_rpc_method_handler(
                    _answering(state, functions[name], response, _COUNTED.get(name, ""), is_open=name in _OPEN),
                    request_deserializer=request.FromString,
                    response_serializer=response.SerializeToString,
                )
            server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, handlers)])
        checks = _Health(state)
        health_pb2_grpc.add_HealthServicer_to_server(checks, server)
        for file in (health_pb2, reflection_pb2):
            POOL.AddSerializedFile(file.DESCRIPTOR.serialized_pb)
        reflection.enable_server_reflection((*answers, health.SERVICE_NAME, reflection.SERVICE_NAME), server, POOL)
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            if tls is None:
                port = server.add_insecure_port(address)
            else:
                pair = (tls[1].read_bytes(), tls[0].read_bytes())
                port = server.add_secure_port(address, grpc.ssl_server_credentials([pair]))
        except (RuntimeError, OSError) as error:
            raise ModelError(f"cannot listen on {address} for gRPC: {error}") from error
        await checks.update()
        await server.start()
        return cls(server, port, checks)

    async def stop(self, seconds: float) -> None:
        """Take no further calls, and finish those that there are, within some seconds."""
        self._following.cancel()
        await self._health.enter_graceful_shutdown()
        await self._server.stop(seconds)


class _Health(health.aio.HealthServicer):
    """Health checks that are right while the server is ready.

    Args:
        state: What the server is doing.
    """

    def __init__(self, state: ServingState) -> None:
        super().__init__()
        self._state = state

    async def Check(self, request: Any, context: Any) -> Any:  # noqa: N802 (a method of the protocol)
        """Answer a check."""
        await self.update()
        return await super().Check(request, context)

    async def update(self) -> None:
        """Take over whether the server is ready, and tell those who watch it."""
        status = health_pb2.HealthCheckResponse
        for name in ("", INFERENCE, PREDICTION, MODEL):
            await self.set(name, status.NOT_SERVING if self._state.problem else status.SERVING)

    async def follow(self) -> None:
        """Update without an end."""
        while True:
            await self.update()
            await asyncio.sleep(_HEALTH_SECONDS)


def _answering(state: ServingState, method: Method, response: Any, label: str, *, is_open: bool) -> Callable[..., Any]:
    """Make the function that answers the calls of a method.

    Args:
        state: What the server is doing.
        method: Takes a request, and gives the fields of its answer.
        response: The class of the answer.
        label: How its calls are counted; empty for not at all.
        is_open: Whether it answers without the server's token.
    """

    async def answer(request: Any, context: Any) -> Any:
        start, code = time.perf_counter(), 500
        try:
            if not is_open:
                _check_token(state, context)
            found = response(**await method(request))
            code = 200
        except RequestError as error:
            code = error.status
            await context.abort(CODES.get(code, grpc.StatusCode.UNKNOWN), str(error))
        finally:
            if label:
                state.metrics.requests.labels(label, code).inc()
                state.metrics.request_seconds.labels(label).observe(time.perf_counter() - start)
        return found

    return answer


def _check_token(state: ServingState, context: Any) -> None:
    given = dict(context.invocation_metadata() or ()).get("authorization", "")
    if state.access.token and not state.access.is_right(given if isinstance(given, str) else ""):
        raise RequestError("send the metadata authorization: Bearer TOKEN with the server's token", 401)


def _open_inference(state: ServingState) -> dict[str, Method]:
    """The functions that answer the methods of the Open Inference Protocol."""

    async def live(_request: Any) -> dict[str, Any]:
        return {"live": True}

    async def ready(_request: Any) -> dict[str, Any]:
        return {"ready": not state.problem}

    async def model_ready(request: Any) -> dict[str, Any]:
        state.served(request.name, request.version)
        return {"ready": not state.problem}

    async def server_metadata(_request: Any) -> dict[str, Any]:
        return open_inference.server_metadata()

    async def model_metadata(request: Any) -> dict[str, Any]:
        return open_inference.metadata(state.served(request.name, request.version).service)

    async def infer(request: Any) -> dict[str, Any]:
        model = state.served(request.model_name, request.model_version)
        service = model.service
        with state.holding(request.ByteSize()), model.held():
            inputs = inputs_of(request, service)
            names = [open_inference.check_output(each.name, service) for each in request.outputs]
            outputs = await state.infer(model, inputs)
        wanted = dict.fromkeys(names or service.output_specs, True)
        body, binary = open_inference.answer(outputs, wanted, request.id, service)
        tensors = [{key: tensor[key] for key in ("name", "datatype", "shape")} for tensor in body.pop("outputs")]
        return {**body, "outputs": tensors, "raw_output_contents": binary}

    return {
        "ServerLive": live,
        "ServerReady": ready,
        "ModelReady": model_ready,
        "ServerMetadata": server_metadata,
        "ModelMetadata": model_metadata,
        "ModelInfer": infer,
    }


def inputs_of(request: Any, service: Service) -> Arrays:
    """Read the inputs of a call of the Open Inference Protocol.

    Args:
        request: A ``ModelInferRequest``.
        service: What the model takes.

    Raises:
        RequestError: The inputs do not fit the model; the message says what does.
    """
    raw = list(request.raw_input_contents)
    if raw and len(raw) != len(request.inputs):
        raise RequestError(f"raw_input_contents has {len(raw)} entries for {len(request.inputs)} inputs")

    def read(place: int, name: str, shape: tuple[int, ...], spec: ArraySpec) -> Array:
        if raw:
            return open_inference.of_bytes(name, raw[place], shape, spec)
        if spec.dtype not in CONTENTS:
            raise RequestError(f"input {name} takes {spec.dtype}: send it in raw_input_contents")
        contents = getattr(request.inputs[place].contents, CONTENTS[spec.dtype])
        return open_inference.shaped(name, values_of(name, contents, spec), shape)

    described = ((each.name, list(each.shape), each.datatype) for each in request.inputs)
    return open_inference.gathered(described, read, service)
