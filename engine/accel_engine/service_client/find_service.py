"""Finds the model and the protocol of a service's URL."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from accel_engine.errors import UsageError
from accel_engine.model_server.protocols import OWN_SERVER
from accel_engine.requests.check_service import CheckOptions
from accel_engine.run.directory.run_paths import plain_name
from accel_engine.service_client.grpc_channel import GrpcChannel
from accel_engine.service_client.rest_v1 import RestV1
from accel_engine.service_client.rest_v2 import RestV2, has_binary, server_name
from accel_engine.service_client.service_runtime import ServiceRuntime
from accel_engine.service_client.transport import ServiceError, Transport, UnreachableError

REFUSED = (401, 403)
"""The statuses of a server that wants another token."""

UNKNOWN_METHOD = 501
"""The status of a server that does not speak a protocol of gRPC."""

_PATH = re.compile(r"/?(?:(v[12])(?:/models/([^/:]+)(?:/versions/([^/:]+))?)?(?:[/:][a-z]+)?)?/?")
_GRPC_PATH = re.compile(r"/?([^/]*)/?")


@dataclass(frozen=True, slots=True)
class ServiceUrl:
    """The parts of a service's URL."""

    scheme: str
    """``http``, ``https``, ``grpc`` or ``grpcs``."""
    address: str
    """Host and port."""
    protocol: str = ""
    """``v1`` or ``v2``, if the path tells."""
    model: str = ""
    """The model's name, if the path tells."""
    version: str = ""
    """Its version, if the path tells."""

    @property
    def is_grpc(self) -> bool:
        """Whether it is spoken with gRPC."""
        return self.scheme.startswith("grpc")


def parse_url(text: str) -> ServiceUrl:
    """Parse a URL: ``127.0.0.1:8501``, ``http://host/v2/models/digits``, ``grpc://host:9000/digits``.

    Raises:
        UsageError: The text is not a URL of a service.
    """
    url = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _no_url(text) from error
    if parts.scheme not in ("http", "https", "grpc", "grpcs") or not parts.hostname or parts.query or parts.username:
        raise _no_url(text)
    is_grpc = parts.scheme.startswith("grpc")
    if is_grpc and port is None:
        raise UsageError(f"{text!r} has no port, which gRPC needs: give one such as grpc://127.0.0.1:9000")
    found = (_GRPC_PATH if is_grpc else _PATH).fullmatch(parts.path)
    if not found:
        raise UsageError(
            f"{text!r} is not a URL of a model: its path is empty, or such as /v2/models/digits or /v1/models/digits"
        )
    if is_grpc:
        return ServiceUrl(parts.scheme, parts.netloc, "grpc", unquote(found[1]))
    protocol, model, version = found.groups(default="")
    return ServiceUrl(parts.scheme, parts.netloc, protocol, unquote(model), unquote(version))


def _no_url(text: str) -> UsageError:
    return UsageError(f"{text!r} is not a URL of a service: give one such as http://127.0.0.1:8501 or grpc://host:9000")


@dataclass(frozen=True, slots=True)
class ServedRun:
    """The run of a model that this program's server serves, as the server describes it."""

    name: str
    """Its name in URLs."""
    run: str
    """The run that trained it."""
    step: int
    """Steps that it was trained for."""
    format: str
    """Its format and precision in a word."""


def served_run(url: ServiceUrl, *, token: str = "", ca: str = "") -> ServedRun | None:
    """Ask this program's server for its model; ``None`` from other servers, and over gRPC.

    Raises:
        UnreachableError: The server does not answer.
    """
    if url.is_grpc:
        return None
    transport = Transport(f"{url.scheme}://{url.address}", token, ca)
    try:
        if not server_name(transport).startswith(OWN_SERVER):
            return None
        found = transport.get("/about").json()
        return ServedRun(str(found["name"]), str(found["run"]), int(found["step"]), str(found["format"]))
    except UnreachableError:
        raise
    except (ServiceError, KeyError, TypeError, ValueError):
        return None


def find_service_of_run(
    path: Path, text: str, options: CheckOptions, token: str
) -> tuple[ServedRun | None, ServiceRuntime]:
    """Find the service that should serve a trained model, and what this program's own server tells of it.

    Args:
        path: The run's directory, or the model's file.
        text: The URL.
        options: How it is asked.
        token: See :func:`find_service`.

    Raises:
        ServiceError: The service cannot be reached, or has no such model.
        UsageError: The text is not a URL of a service, or the protocol is not for it.
    """
    url = parse_url(text)
    _check_protocol(url, options.protocol)
    told = served_run(url, token=token, ca=options.ca)
    own = (told.name,) if told else ()
    names = (*own, plain_name(path), path.name, path.stem, "model", "default")
    return told, find_service(url, names, options.protocol, token=token, ca=options.ca)


def find_service(
    url: ServiceUrl, names: Sequence[str], protocol: str = "auto", *, token: str = "", ca: str = ""
) -> ServiceRuntime:
    """Find the model of a service, and the protocol that it speaks.

    Args:
        url: The service.
        names: Names that its model may have, tried in order if the URL does not tell it.
        protocol: One of :data:`accel_engine.requests.check_service.PROTOCOLS`.
        token: Sent as a bearer token, if there is one.
        ca: A file with the certificates that are trusted; empty for the system's.

    Raises:
        ServiceError: The service cannot be reached, or has no such model.
        UsageError: The protocol is not for the URL, or gRPC is not installed.
    """
    _check_protocol(url, protocol)
    if url.is_grpc:
        channel = GrpcChannel(url.address, token=token, is_secure=url.scheme == "grpcs", ca=ca)
        from accel_engine.service_client.grpc_v1 import GrpcV1  # which import what the channel has found to be there
        from accel_engine.service_client.grpc_v2 import GrpcV2

        names = tuple(_models(url, (*names, ""), list))  # "": the only one
        asked: list[tuple[str, Callable[[str], ServiceRuntime]]] = []
        if protocol != "grpc-v1":
            asked += [(name, lambda name: GrpcV2(channel, name)) for name in names]
        if protocol != "grpc":
            asked += [(name, lambda name: GrpcV1(channel, name)) for name in names]
        return _first(url, asked)
    transport = Transport(f"{url.scheme}://{url.address}", token, ca)
    candidates = list(_models(url, names, lambda: _listed(transport)))
    wanted = url.protocol or ("" if protocol == "auto" else protocol)
    tries: list[tuple[str, Callable[[str], ServiceRuntime]]] = []
    if not wanted.startswith("v1"):
        binary = protocol == "v2-binary" or (protocol == "auto" and has_binary(transport))
        tries += [(name, lambda name: RestV2(transport, name, url.version, binary=binary)) for name in candidates]
    if not wanted.startswith("v2"):
        tries += [(name, lambda name: RestV1(transport, name, url.version)) for name in candidates]
    return _first(url, tries)


def _check_protocol(url: ServiceUrl, protocol: str) -> None:
    if url.is_grpc != protocol.startswith("grpc") and protocol != "auto":
        raise UsageError(
            f"--protocol {protocol} does not go with {url.scheme}://: "
            "gRPC has another port, such as grpc://127.0.0.1:9000"
        )


def _first(url: ServiceUrl, tries: Sequence[tuple[str, Callable[[str], ServiceRuntime]]]) -> ServiceRuntime:
    """Connect to the first model that the server has.

    Raises:
        ServiceError: The server has none of the models, or cannot be reached.
    """
    refused: dict[str, ServiceError] = {}
    for name, connect in tries:
        try:
            return connect(name)
        except UnreachableError:
            raise
        except ServiceError as error:
            if error.status in REFUSED:
                raise
            if name not in refused or refused[name].status == UNKNOWN_METHOD:
                refused[name] = error
    if url.model:
        raise next(iter(refused.values()))
    server, names = f"{url.scheme}://{url.address}", " or ".join(filter(None, refused))
    example = f"{server}/NAME" if url.is_grpc else f"{server}/v2/models/NAME"
    what = f"{server} has no model of the name {names}" if names else f"{server} does not tell which models it has"
    raise ServiceError(f"{what}: give its name in the URL, such as {example}")


def _models(url: ServiceUrl, names: Sequence[str], listed: Callable[[], Sequence[str]]) -> Iterator[str]:
    """The names to try: the URL's own; else the ones that the server lists, then the ones that the model may have."""
    yield from (url.model,) if url.model else dict.fromkeys((*listed(), *names))


def _listed(transport: Transport) -> list[str]:
    """The models that a server lists, by Triton's extension of the protocol; empty without the extension."""
    try:
        found = transport.send("POST", "/v2/repository/index", b"{}", {"Content-Type": "application/json"}).json()
        return [str(each["name"]) for each in found]
    except (ServiceError, KeyError, TypeError) as error:
        if isinstance(error, ServiceError) and error.status in REFUSED:
            raise
        return []
