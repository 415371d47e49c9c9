"""Runs a server until a signal ends it: listens, loads the model, answers, reads the folder again, drains."""

import asyncio
import json
import logging
import os
import signal
import socket
import time
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from accel_engine.errors import AccelError, ModelError, file_errors
from accel_engine.files import replacing
from accel_engine.model_server.access import ServerAccess, check_tls
from accel_engine.model_server.application import ServingState, application
from accel_engine.model_server.metrics import ServerMetrics
from accel_engine.model_server.served_model import Limits, ServedModel, largest_body
from accel_engine.model_server.service import read_service

LOG = logging.getLogger("model_server")

CONNECTIONS = 1024
"""Connections at once; further ones are answered with 503."""

KEEP_ALIVE = 75
"""Seconds that an idle connection stays open."""

FIRST_BYTES = 15.0
"""Seconds that a client has to send the head of a request."""

HEAD_BYTES = 1 << 16
"""Bytes of the head of a request at most."""


AGAIN = 1.0
"""Seconds after which a second signal ends the server at once: some programs send one twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """How a server runs."""

    folder: Path
    host: str = "127.0.0.1"
    port: int = 8501
    """0 for a free one."""
    grpc_port: int | None = None
    """0 for a free one; ``None`` for no gRPC."""
    limits: Limits = field(default_factory=Limits)
    is_body_of_model: bool = False
    """Whether the bytes of a request at most are the default for the model, also for one that takes its place."""
    access: ServerAccess = field(default_factory=ServerAccess)
    tls: tuple[Path, Path] | None = None
    """PEM files with the certificates and the key; ``None`` for no TLS."""
    drain: float = 0.0
    """Seconds for which the server is not ready, but answers, before it ends."""
    state_file: Path | None = None
    """Where the server says what it listens on."""


class _PatientProtocol(HttpToolsProtocol):
    """Closes connections whose clients do not send the head of a request in time, or a too large one."""

    _timer: asyncio.TimerHandle | None = None
    _head = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()

    def _wait(self) -> None:
        self._head = 0
        self._timer = self.loop.call_later(FIRST_BYTES, self._end)

    def _end(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.close()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def data_received(self, data: bytes) -> None:
        if self._timer is not None:
            self._head += len(data)
        super().data_received(data)
        if self._timer is not None and self._head > HEAD_BYTES:
            self._end()

    def on_message_begin(self) -> None:
        if self._timer is None:
            self._wait()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._stop()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)


class _Uvicorn(uvicorn.Server):
    """A server that leaves signals to this module."""

    def capture_signals(self) -> Any:
        return nullcontext()


async def serve(settings: ServerSettings) -> int:
    """Serve until a signal; returns the exit status.

    Raises:
        UsageError: The folder has no model to serve, or the files of TLS cannot be used.
        ModelError: An address cannot be used, or the model cannot be loaded.
    """
    read_service(settings.folder)  # before anything is started
    metrics = ServerMetrics()
    state = ServingState(settings.limits, settings.access, metrics)
    loop, end, reload = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
    server = _Uvicorn(_configuration(settings, state))
    listener = _listener(settings)

    first = 0.0

    def on_end() -> None:
        nonlocal first
        now = loop.time()
        first = first or now
        if now > first + AGAIN:
            LOG.warning("ends at once")
            server.force_exit = True
        end.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_end)
    loop.add_signal_handler(signal.SIGHUP, reload.set)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGHUP,))  # which who starts detached processes holds back
    serving = asyncio.create_task(server.serve([listener]))
    host, port = listener.getsockname()[:2]
    remote = None
    try:
        if settings.grpc_port is not None:
            from accel_engine.model_server.grpc_server import GrpcServer

            remote = await GrpcServer.start(state, settings.host, settings.grpc_port, settings.tls)
        _write_state(settings, host, port, remote.port if remote else None)
        LOG.info("listens on %s://%s:%d", "https" if settings.tls else "http", _shown(host), port)
        loading = asyncio.create_task(ServedModel.start(settings.folder, settings.limits, metrics))
        if await _first(loading, end):
            state.model = loading.result()
            LOG.info("serves %s version %s", state.model.service.name, state.model.service.version)
            await _until_end(settings, state, end, reload)
        state.is_draining = True
        if settings.drain and not server.force_exit:
            LOG.info("is not ready, and answers for %g s more", settings.drain)
            await _either(asyncio.sleep(settings.drain), _forced(server))
    finally:
        server.should_exit = True
        if remote:
            await remote.stop(0 if server.force_exit else settings.limits.seconds)
        with suppress(asyncio.CancelledError):
            await serving
        if state.model:
            await state.model.close()
        if server.force_exit:
            for task in state.closing:
                task.cancel()
        await asyncio.gather(*state.closing, return_exceptions=True)
        if settings.state_file:
            settings.state_file.unlink(missing_ok=True)
    LOG.info("has ended")
    return 0


async def _until_end(settings: ServerSettings, state: ServingState, end: asyncio.Event, reload: asyncio.Event) -> None:
    while not end.is_set():
        await _either(end.wait(), reload.wait())
        if reload.is_set() and not end.is_set():
            reload.clear()
            await _either(_reload(settings, state), end.wait())


async def _reload(settings: ServerSettings, state: ServingState) -> None:
    """Load the folder again, and let the new model take the place of the old one once it is warm."""
    try:
        model = await ServedModel.start(settings.folder, settings.limits, state.metrics)
    except (AccelError, OSError) as error:
        state.metrics.reload_failures.inc()
        LOG.warning("cannot load %s again, and serves what it had: %s", settings.folder, error)
        return
    old, state.model = state.model, model
    if settings.is_body_of_model:
        state.limits = replace(state.limits, body=largest_body(model.service))
    state.metrics.reloads.inc()
    LOG.info("serves %s version %s", model.service.name, model.service.version)
    if old:
        state.closing.append(asyncio.create_task(old.retire()))  # which the end of the server must not cancel


async def _first(loading: asyncio.Task[ServedModel], end: asyncio.Event) -> bool:
    """Whether the model was loaded before the server shall end."""
    waiting = asyncio.create_task(end.wait())
    await asyncio.wait((loading, waiting), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if not loading.done():
        loading.cancel()
        with suppress(asyncio.CancelledError, AccelError):
            await loading
        return False
    loading.result()
    return True


async def _either(*waits: Any) -> None:
    """Wait for the first of several, and cancel the others."""
    tasks = [asyncio.ensure_future(each) for each in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _forced(server: uvicorn.Server) -> None:
    while not server.force_exit:
        await asyncio.sleep(0.1)


def _configuration(settings: ServerSettings, state: ServingState) -> uvicorn.Config:
    if settings.tls:
        check_tls(*settings.tls)
    config = uvicorn.Config(
        application(state),
        http=_PatientProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=int(settings.limits.seconds) + 1,
        ssl_certfile=settings.tls and settings.tls[0],
        ssl_keyfile=settings.tls and settings.tls[1],
    )
    config.load()
    return config


def _listener(settings: ServerSettings) -> socket.socket:
    with file_errors(f"cannot listen on {settings.host}:{settings.port}", ModelError):
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    return listener


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _write_state(settings: ServerSettings, host: str, port: int, grpc_port: int | None) -> None:
    """Say what the server listens on."""
    if settings.state_file is None:
        return
    values = {
        "pid": os.getpid(),
        "host": host,
        "port": port,
        "grpc_port": grpc_port,
        "tls": settings.tls is not None,
        "name": read_service(settings.folder).name,
        "folder": str(settings.folder),
        "started": time.time(),
    }
    with replacing(settings.state_file) as temporary:
        temporary.write_text(json.dumps(values) + "\n")
