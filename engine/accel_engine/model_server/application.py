"""The application: what is answered at each address, within the limits of the server."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, ClassVar, TypeVar
from urllib.parse import unquote

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from accel_engine.formats import target_name
from accel_engine.inference.runtime import Arrays
from accel_engine.model_server import open_inference, rest_v1
from accel_engine.model_server.access import HEADERS, ServerAccess
from accel_engine.model_server.back_end_process import Outputs
from accel_engine.model_server.files import predictions, read_file
from accel_engine.model_server.metrics import CONTENT_TYPE, ServerMetrics
from accel_engine.model_server.openapi import description
from accel_engine.model_server.protocols import JSON_LENGTH
from accel_engine.model_server.request_error import RequestError
from accel_engine.model_server.served_model import Limits, ServedModel

LOG = logging.getLogger("model_server")

LARGE = 1 << 18
"""A body of more bytes is parsed in a thread, so that others are answered meanwhile."""

PARSERS = 4
"""Threads that parse bodies and decode files."""

BODIES = 8
"""The bodies in memory have at most this many times the bytes of the largest one."""

LINGER = 2.0
"""Seconds at most for which the rest of a body that is too large is read and discarded."""

T = TypeVar("T")

Endpoint = Callable[["ServingState", Request], Awaitable[Response]]


@dataclass(slots=True)
class ServingState:
    """The state of a server."""

    limits: Limits
    access: ServerAccess
    metrics: ServerMetrics
    model: ServedModel | None = None
    """``None`` until it is warm."""
    is_draining: bool = False
    """Whether the server is about to end."""
    body_bytes: int = 0
    """Bytes of the bodies that are being read and answered."""
    parsers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(PARSERS, "parser"))
    closing: list[asyncio.Task[None]] = field(default_factory=list)
    """Tasks that finish what older versions of the model have accepted."""

    @property
    def problem(self) -> str:
        """Why the server is not ready; empty if it is."""
        if self.is_draining:
            return "the server is about to end"
        if self.model is None:
            return "the model is being loaded"
        return "" if self.model.is_ready else "the model is being started again"

    def served(self, name: str = "", version: str = "") -> ServedModel:
        """The model with a name and a version; empty ones match all.

        Raises:
            RequestError: There is no such model or version, or the model is being loaded.
        """
        if self.model is None:
            raise RequestError("the model is being loaded", 503, retry_after=1)
        service = self.model.service
        if name not in ("", service.name):
            raise RequestError(f"there is no model {name[:100]}; the model is {service.name}", 404)
        if version not in ("", service.version):
            raise RequestError(f"there is no version {version[:20]} of {service.name}; it has {service.version}", 404)
        return self.model

    def check_room(self, size: int) -> None:
        """Check that further bytes of bodies are within the limit.

        Raises:
            RequestError: All bodies together would be too large.
        """
        if self.body_bytes + size > BODIES * self.limits.body:
            self.metrics.rejected.labels("memory").inc()
            raise RequestError("the server is busy with large requests", 429, retry_after=1)

    @contextmanager
    def holding(self, size: int) -> Iterator[None]:
        """A block with a request of some bytes in memory.

        Raises:
            RequestError: All bodies together would be too large.
        """
        self.check_room(size)
        self.body_bytes += size
        try:
            yield
        finally:
            self.body_bytes -= size

    async def in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function that parses or decodes a body, in a thread.

        Raises:
            RequestError: The function takes too long. A thread cannot be ended: it continues, and others wait for it.
        """
        try:
            async with asyncio.timeout(self.limits.seconds):
                return await asyncio.get_running_loop().run_in_executor(self.parsers, function, *arguments)
        except TimeoutError:
            self.metrics.rejected.labels("parsing").inc()
            raise RequestError(f"the body could not be read within {self.limits.seconds:g} s", 504) from None

    async def infer(self, model: ServedModel, inputs: Arrays) -> Outputs:
        """Compute outputs, and count the examples.

        Raises:
            RequestError: See :meth:`ServedModel.infer`.
        """
        outputs = await model.infer(inputs)
        self.metrics.examples.inc(len(next(iter(inputs.values()))))
        return outputs


def application(state: ServingState) -> Any:
    """The ASGI application of a server."""

    def endpoint(function: Endpoint) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            return await function(state, request)

        return answer

    def counted(function: Endpoint, protocol: str) -> Callable[[Request], Awaitable[Response]]:
        """Counts and times the requests for predictions."""

        async def answer(request: Request) -> Response:
            start, code = time.perf_counter(), 500
            try:
                response = await function(state, request)
                code = response.status_code
            except RequestError as error:
                code = error.status
                raise
            except ClientDisconnect:
                code = 499
                raise
            finally:
                state.metrics.requests.labels(protocol, code).inc()
                state.metrics.request_seconds.labels(protocol).observe(time.perf_counter() - start)
            return response

        return answer

    model, version = "/v2/models/{name}", "/versions/{version}"
    get: tuple[tuple[str, Endpoint], ...] = (
        ("/", _page),
        ("/page.js", _static),
        ("/page.css", _static),
        ("/livez", _live),
        ("/readyz", _ready),
        ("/metrics", _metrics),
        ("/openapi.json", _openapi),
        ("/about", _about),
        ("/v2", _server),
        ("/v2/health/live", _live),
        ("/v2/health/ready", _ready),
        (model, _model),
        (f"{model}{version}", _model),
        (f"{model}/ready", _model_ready),
        (f"{model}{version}/ready", _model_ready),
        ("/v1/models/{name}", _status),
        ("/v1/models/{name}/versions/{version}", _status),
        ("/v1/models/{name}/metadata", _metadata),
        ("/v1/models/{name}/versions/{version}/metadata", _metadata),
    )
    post: tuple[tuple[str, Endpoint, str], ...] = (
        (f"{model}/infer", _infer, "v2"),
        (f"{model}{version}/infer", _infer, "v2"),
        ("/v1/models/{name}:predict", _predict_v1, "v1"),
        ("/v1/models/{name}/versions/{version}:predict", _predict_v1, "v1"),
        ("/predict", _predict_file, "predict"),
    )
    routes = [Route(path, counted(function, protocol), methods=["POST"]) for path, function, protocol in post]
    routes += [Route(path, endpoint(function), methods=["GET"]) for path, function in get]
    found = Starlette(
        routes=routes,
        exception_handlers={
            RequestError: _refused,
            HTTPException: _not_found,
            ClientDisconnect: _gone,
            Exception: _failed,
        },
    )
    return _Guard(found, state)


@dataclass(slots=True)
class _Guard:
    """Checks who asks, and adds headers, before and after the application."""

    app: Any
    state: ServingState
    _headers: ClassVar = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *self._headers]
            await send(message)

        try:
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            self.state.access.check(scope["path"], headers)
        except RequestError as error:
            await _refused(None, error)(scope, receive, send_with_headers)
            return
        await self.app(scope, receive, send_with_headers)


def _json(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    body = orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)
    return Response(body, status, headers, "application/json")


def _refused(_request: Request | None, error: Exception) -> Response:
    """The answer to a request that is refused."""
    assert isinstance(error, RequestError)  # noqa: S101
    headers = {"Retry-After": str(error.retry_after)} if error.retry_after else {}
    if error.status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if error.status in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE):
        headers["Connection"] = "close"  # the rest of the body is not read
    return _json({"error": str(error)}, error.status, headers)


def _not_found(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101
    words = {404: f"there is nothing at {request.url.path[:200]}: see /openapi.json"}
    words[405] = f"{request.method} is not for {request.url.path[:200]}: see /openapi.json"
    return _json({"error": words.get(error.status_code, error.detail)}, error.status_code, dict(error.headers or {}))


def _gone(_request: Request, _error: Exception) -> Response:
    return Response(status_code=499)


def _failed(_request: Request, _error: Exception) -> Response:
    """The answer where the server is wrong; Starlette logs why."""
    return _json({"error": "the server failed; its log says why"}, 500)


async def _body(state: ServingState, request: Request) -> "_Body":
    """Read the body of a request.

    Raises:
        RequestError: The body is encoded, too large, or too slow.
    """
    limit = state.limits.body
    if request.headers.get("content-encoding", "identity") != "identity":
        raise RequestError("send the body uncompressed, without Content-Encoding", 415)
    declared = request.headers.get("content-length", "0")
    content, held = bytearray(), _Body(state)
    try:
        if declared.isdecimal() and int(declared) > limit:
            raise _too_large(limit)
        async with asyncio.timeout(state.limits.seconds):
            async for chunk in request.stream():
                if len(content) + len(chunk) > limit:
                    raise _too_large(limit)
                state.check_room(len(chunk))
                content += chunk
                held.take(len(chunk))
    except TimeoutError:
        held.release()
        raise RequestError(f"the body did not arrive within {state.limits.seconds:g} s", 408) from None
    except RequestError as error:
        held.release()
        if error.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            await _throw_away(request)
        raise
    except BaseException:
        held.release()
        raise
    held.content = bytes(content)
    return held


async def _throw_away(request: Request) -> None:
    """Read what is left of a body: most clients read no answer before, and see a reset connection in place of one."""
    if "expect" not in request.headers:  # such a client waits for an answer
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER):
                async for _ in request.stream():
                    pass


@dataclass(slots=True)
class _Body:
    """A body in memory, while a block runs."""

    state: ServingState
    content: bytes = b""
    _size: int = field(default=0)

    def take(self, size: int) -> None:
        self._size += size
        self.state.body_bytes += size

    def release(self) -> None:
        self.state.body_bytes -= self._size
        self._size = 0

    def __enter__(self) -> bytes:
        return self.content

    def __exit__(self, *_: object) -> None:
        self.release()


def _too_large(limit: int) -> RequestError:
    return RequestError(f"the body is larger than {limit:,} bytes, which the server takes: send fewer examples", 413)


def parsed(content: bytes) -> Any:
    """The value of a body, in which ``NaN`` and ``Infinity`` are numbers: clients of both protocols write them.

    Raises:
        RequestError: The body is not JSON.
    """
    try:
        return orjson.loads(content)
    except ValueError as error:
        if b"NaN" in content or b"Infinity" in content:
            with suppress(ValueError, RecursionError):
                return json.loads(content)
        raise RequestError(f"the body is not valid JSON: {error}") from None


async def _in_thread(state: ServingState, content: bytes, function: Callable[[], T]) -> T:
    """Call a function that parses a body; in a thread if the body is large, or has bytes in base64."""
    is_quick = len(content) <= LARGE and b'"b64"' not in content  # a small picture may have many pixels
    return function() if is_quick else await state.in_thread(function)


def _model_of(state: ServingState, request: Request) -> ServedModel:
    return state.served(request.path_params.get("name", ""), request.path_params.get("version", ""))


async def _predict_v1(state: ServingState, request: Request) -> Response:
    model = _model_of(state, request)
    with model.held(), await _body(state, request) as content:
        read = await _in_thread(state, content, lambda: rest_v1.inputs_of(parsed(content), model.service))
        outputs = await state.infer(model, read[0])
        return _json(rest_v1.answer(outputs, is_by_row=read[1]))


async def _infer(state: ServingState, request: Request) -> Response:
    model = _model_of(state, request)
    with model.held(), await _body(state, request) as content:
        length = request.headers.get(JSON_LENGTH, str(len(content)))
        if not length.isdecimal() or int(length) > len(content):
            raise RequestError(f"{JSON_LENGTH} is {length[:30]}, and the body has {len(content)} bytes")
        size = int(length)

        def parse() -> tuple[Arrays, dict[str, bool], str]:
            return open_inference.inputs_of(parsed(content[:size]), content[size:], model.service)

        inputs, wanted, identifier = await _in_thread(state, content, parse)
        outputs = await state.infer(model, inputs)
    body, binary = open_inference.answer(outputs, wanted, identifier, model.service)
    if not binary:
        return _json(body)
    head = orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY)
    return Response(
        b"".join([head, *binary]),
        headers={JSON_LENGTH: str(len(head))},
        media_type="application/octet-stream",
    )


async def _predict_file(state: ServingState, request: Request) -> Response:
    model = state.served()
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    with model.held(), await _body(state, request) as content:
        name, part = unquote(request.headers.get("x-file-name", "")), content
        if media_type == "multipart/form-data":
            part, name, media_type = await _part(request, content)
        examples = await state.in_thread(read_file, part, name, media_type, model.service)
        outputs: Outputs = {}
        if len(examples.problems) < len(examples.names):
            outputs = await state.infer(model, examples.inputs)
    notes = {"notes": examples.notes} if examples.notes else {}
    return _json({"predictions": predictions(examples, outputs, model.service), **notes})


async def _part(request: Request, content: bytes) -> tuple[bytes, str, str]:
    """The file of a form: what is in it, its name and its media type."""

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": content}

    form = Request(request.scope, receive)
    try:
        async with form.form(max_files=1, max_fields=1, max_part_size=len(content)) as fields:
            file = fields.get("file")
            if file is None or isinstance(file, str):
                raise RequestError('the form has a field "file" with the file')
            return await file.read(), file.filename or "", (file.content_type or "").lower()
    except HTTPException as error:
        raise RequestError(f"the form cannot be read: {error.detail}") from None


async def _live(_state: ServingState, _request: Request) -> Response:
    return _json({"live": True})


async def _ready(state: ServingState, _request: Request) -> Response:
    problem = state.problem
    return _json({"ready": not problem, **({"reason": problem} if problem else {})}, 503 if problem else 200)


async def _metrics(state: ServingState, _request: Request) -> Response:
    metrics, model = state.metrics, state.model
    metrics.ready.set(not state.problem)
    metrics.queue_limit.set(state.limits.queue)
    if model is not None:
        metrics.queue.set(model.queued)
        metrics.backend_memory.set(model.memory)
        service = model.service
        metrics.info.clear()
        metrics.info.labels(service.name, service.version, service.run, service.model.format).set(1)
    return Response(metrics.text(), media_type=CONTENT_TYPE)


async def _openapi(state: ServingState, _request: Request) -> Response:
    return _json(description(state.served().service, state.limits))


async def _about(state: ServingState, _request: Request) -> Response:
    """The facts on the model for the page."""
    service = state.served().service
    columns = [{"name": each.name, "kind": each.kind} for each in service.files.columns]
    shown = ("name", "version", "run", "step", "task", "kind", "data", "class_names", "metrics")
    return _json(
        {
            **{name: getattr(service, name) for name in shown},
            "format": target_name(service.model.format, service.model.quantize),
            "takes": service.files.kind,
            "columns": columns or [{"name": name, "kind": "number"} for name in service.files.features],
        }
    )


async def _server(_state: ServingState, _request: Request) -> Response:
    return _json(open_inference.server_metadata())


async def _model(state: ServingState, request: Request) -> Response:
    return _json(open_inference.metadata(_model_of(state, request).service))


async def _model_ready(state: ServingState, request: Request) -> Response:
    service, problem = _model_of(state, request).service, state.problem
    return _json({"name": service.name, "ready": not problem}, 503 if problem else 200)


async def _status(state: ServingState, request: Request) -> Response:
    return _json(rest_v1.status(_model_of(state, request).service, is_ready=not state.problem))


async def _metadata(state: ServingState, request: Request) -> Response:
    return _json(rest_v1.metadata(_model_of(state, request).service))


async def _page(_state: ServingState, _request: Request) -> Response:
    return HTMLResponse(_file("page.html"))


async def _static(_state: ServingState, request: Request) -> Response:
    name = request.url.path.lstrip("/")
    return Response(_file(name), media_type="text/css" if name.endswith(".css") else "text/javascript")


def _file(name: str) -> str:
    return (Path(__file__).parent / "page" / name).read_text("utf-8")
