"""Starts, changes and ends the servers of deployments, which are detached processes."""

import importlib.util
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from accel_engine.deployment.deploy_options import DEFAULT_PORT
from accel_engine.deployment.deployments import (
    CURRENT,
    LOG,
    SERVER,
    STATE,
    DeployError,
    Deployment,
    all_deployments,
    end_process,
    server_process,
)
from accel_engine.deployment.server_metrics import read_metrics
from accel_engine.errors import UsageError, file_errors
from accel_engine.process.detached import leave, start_detached
from accel_engine.service_client.transport import SECONDS, ServiceError, Transport, UnreachableError, read_client_token
from accel_engine.text import printable_line
from accel_engine.words import numbers

LIBRARIES = ("httptools", "orjson", "prometheus_client", "starlette", "uvicorn", "uvloop")
"""Modules of the extra that the server needs."""

READY_SECONDS = 180.0
"""How long a server may take until it is ready, or has ended."""

POLL_SECONDS = 0.05

PORTS = 100
"""Ports that are tried from the default one on."""

_LAST = 1 << 14
"""Bytes of a log in which the reason of an end is looked for."""

Cancelled = Callable[[], bool]
"""Whether the user has ended what waits."""


def require_server() -> None:
    """Raise if the server cannot be started here.

    Raises:
        DeployError: Libraries are missing; how to install them.
    """
    missing = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]
    if missing:
        raise DeployError(f"{', '.join(missing)} missing: pip install 'accel-tui[deploy]'")


def choose_port(
    host: str,
    wanted: int | None,
    flag: str = "--port",
    *,
    besides: int | None = None,
    before: Deployment | None = None,
) -> int:
    """A port that is free: the wanted one, or else that of before, or else the first from the default one on.

    Args:
        host: The address.
        wanted: The port; ``None`` for any that no other deployment has, be it stopped.
        flag: What gives the wanted one.
        besides: A port that the same server listens on, too.
        before: The deployment as it was before, which keeps its URL; ``None`` for a new one.

    Raises:
        UsageError: The port is in use, or only for the administrator; or no port is free; or the host is not an address
            of this machine.
    """
    if wanted is not None:
        if problem := _why_not(host, wanted):
            users = [
                each.name
                for each in all_deployments()[0]
                if wanted in (each.port, each.grpc_port) and server_process(each.directory)
            ]
            by = f" by the deployment {users[0]}" if users and problem == "in use" else ""
            raise UsageError(f"port {wanted} of {host} is {problem}{by}: choose another with {flag}")
        return wanted
    others = [each for each in all_deployments()[0] if before is None or each.name != before.name]
    taken = {besides} | {port for each in others for port in (each.port, each.grpc_port)}
    for port in (*([before.port] if before else ()), *range(DEFAULT_PORT, DEFAULT_PORT + PORTS)):
        if port not in taken and not _why_not(host, port):
            return port
    raise UsageError(f"no port from {DEFAULT_PORT} on is free: give one with --port")


def check_ports(deployment: Deployment) -> None:
    """Raise if the server of a deployment that is stopped cannot listen on its ports.

    Raises:
        UsageError: A port is in use, or only for the administrator.
    """
    for port, flag in ((deployment.port, "--port"), (deployment.grpc_port, "--grpc-port")):
        if port is not None:
            choose_port(deployment.host, port, f"accel-tui deploy RUN --name {deployment.name} {flag} N")


def _why_not(host: str, port: int) -> str:
    """Why a server cannot listen on a port; empty if it can.

    Raises:
        UsageError: The host is not an address of this machine.
    """
    with file_errors(f"--host {host} is not an address of this machine", UsageError):
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(address)
            except PermissionError:
                return "for the administrator"
            except OSError as error:
                if error.errno in (98, 48):  # EADDRINUSE of Linux and macOS
                    return "in use"
                raise
    return ""


def transport_of(deployment: Deployment, seconds: float = SECONDS) -> Transport:
    """Requests to a deployment's server, with the time that an answer may take; its certificate is trusted.

    Raises:
        UsageError: The token cannot be read.
    """
    token = read_client_token(deployment.token_file)
    return Transport(
        deployment.url,
        token,
        deployment.tls_certificate,
        checks_name=False,
        seconds=seconds,
        cure=f"the server has an older token: accel-tui deploy restart {deployment.name}",
    )


def server_words(deployment: Deployment, folder: Path, state: Path) -> tuple[str, ...]:
    """The arguments of Python that start a deployment's server on a folder."""
    words = ["-m", SERVER, str(folder), "--host", deployment.host]
    words += ["--port", str(deployment.port), "--state-file", str(state), "--max-queue", str(deployment.max_queue)]
    for flag, value in (
        ("--grpc-port", deployment.grpc_port),
        ("--threads", deployment.threads),
        ("--token-file", deployment.token_file),
        ("--tls-certificate", deployment.tls_certificate),
        ("--tls-key", deployment.tls_key),
    ):
        if value:
            words += [flag, str(value)]
    return tuple(words)


def start_server(deployment: Deployment, is_cancelled: Cancelled = lambda: False) -> float:
    """Start a deployment's server, and wait until it is ready.

    Args:
        deployment: The deployment, whose link leads to a version.
        is_cancelled: Whether to end it instead.

    Returns:
        Seconds until it was ready.

    Raises:
        DeployError: The server has ended, is not ready in time, or was cancelled.
    """
    directory = deployment.directory
    (directory / STATE).unlink(missing_ok=True)
    words = server_words(deployment, directory / CURRENT, directory / STATE)
    log = directory / LOG
    began = log.stat().st_size if log.exists() else 0
    started = time.monotonic()
    process = start_detached(f"the deployment {deployment.name}", *words, log=log, environment=deployment.environment)
    try:
        wait_until_ready(process, deployment, directory / STATE, log, began, is_cancelled)
    except BaseException:
        end_process(process)
        raise
    leave(process)
    return time.monotonic() - started


def wait_until_ready(
    process: "subprocess.Popen[str]",
    deployment: Deployment,
    state: Path,
    log: Path,
    log_begins: int,
    is_cancelled: Cancelled = lambda: False,
) -> None:
    """Wait until a server answers that it is ready.

    Raises:
        DeployError: The server has ended, is not ready in time, or was cancelled.
    """
    transport, deadline = transport_of(deployment), time.monotonic() + READY_SECONDS
    told = "it does not listen"
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise DeployError(f"the server has ended: {_last_line(log, log_begins)}")
        if is_cancelled():
            raise DeployError("ended before the server was ready")
        if state.exists():
            try:
                transport.get("/readyz")
            except (UnreachableError, ServiceError) as error:
                told = str(error)
            else:
                return
        time.sleep(POLL_SECONDS)
    raise DeployError(f"the server is not ready after {numbers.span(READY_SECONDS)}: {told}; its log: {log}")


def _last_line(log: Path, begins: int) -> str:
    """The last line that a server has written since it was started."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(begins, log.stat().st_size - _LAST))
            lines = stream.read().decode(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return printable_line(lines[-1].strip()) if lines else "it has written nothing"


STOP_SECONDS = 60.0
"""How long a server may take to finish what it has accepted."""


def stop_server(deployment: Deployment, is_cancelled: Cancelled = lambda: False) -> bool:
    """Let a deployment's server finish what it has accepted, and end; returns whether one ran.

    Raises:
        DeployError: The server has not ended in time.
    """
    process = server_process(deployment.directory)
    if process is None:
        return False
    try:
        process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        while time.monotonic() < deadline and not is_cancelled():
            if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:  # of a child of this process
                return True
            time.sleep(POLL_SECONDS)
    except psutil.NoSuchProcess:
        return True
    raise DeployError(
        f"the server of {deployment.name} (process {process.pid}) still finishes what it has accepted; "
        "a second stop ends it at once"
    )


def reload_server(deployment: Deployment, number: int) -> None:
    """Make a deployment's server read its link again, and wait until it serves that version.

    Args:
        deployment: The deployment, whose server runs.
        number: The version that the link leads to.

    Raises:
        DeployError: The server does not serve the new version, but still the old one; or it is stopped.
        ServiceError: The server does not answer.
    """
    process = server_process(deployment.directory)
    if process is None:
        raise DeployError(f"the deployment {deployment.name} is stopped")
    transport = transport_of(deployment)
    failures = _reload_failures(transport)
    log = deployment.directory / LOG
    begins = log.stat().st_size if log.exists() else 0
    os.kill(process.pid, signal.SIGHUP)
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if served_version(transport, deployment.name) == str(number):
            return
        if _reload_failures(transport) > failures:
            raise DeployError(f"the server did not take it over: {_last_line(log, begins)}")
        time.sleep(POLL_SECONDS)
    raise DeployError(f"the server did not take it over within {numbers.span(READY_SECONDS)}; its log: {log}")


def served_version(transport: Transport, name: str) -> str:
    """The version that a server serves; empty if its answer has none.

    Raises:
        ServiceError: The server does not answer, or refuses.
    """
    found = transport.get(f"/v2/models/{name}").json()
    versions = found.get("versions") if isinstance(found, dict) else None
    return str(versions[-1]) if isinstance(versions, list) and versions else ""


def _reload_failures(transport: Transport) -> float:
    return read_metrics(transport).total("model_server_reload_failures_total")
