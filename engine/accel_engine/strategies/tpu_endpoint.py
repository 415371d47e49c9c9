"""Parses and probes TPU endpoints: local chips, an address or a name in Google Cloud; without TensorFlow."""

import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from accel_engine.errors import UsageError

LOCAL = "local"
"""The target of the chips in this machine."""

VARIABLES = ("COLAB_TPU_ADDR", "TPU_NAME")
"""Environment variables that may name a TPU; the first one that is set counts."""

ELSEWHERE = "ACCEL_TUI_ELSEWHERE"
"""Environment variable in checks of plans that another machine trains, whose TPU and TensorFlow are not here."""

PORT = 8470
"""Default port of a TPU's address."""

PROBE_TIMEOUT_SECONDS = 2.0
"""Timeout of connecting to an address."""

_PREFIX = "grpc://"
_ADDRESS = re.compile(rf"(?:{_PREFIX})?([\w.-]+)(?::(\d{{1,5}}))?/?")
_LIKE_AN_ADDRESS = re.compile(r"[:,]|^[\d.]+$")
_NAME = re.compile(r"\w[\w./-]*")


@dataclass(frozen=True, slots=True)
class TpuEndpoint:
    """An endpoint of a TPU."""

    target: str
    """The argument of TensorFlow's resolver: ``local``, ``grpc://HOST:PORT`` (one for each host of a TPU, separated by
    commas), or a name in Google Cloud."""
    source: str
    """Where it was set: ``--tpu`` or an environment variable."""
    addresses: tuple[tuple[str, int], ...] = ()
    """Host and port of each address; empty for other targets."""

    @classmethod
    def parse(cls, text: str, source: str) -> Self:
        """Parse an endpoint.

        Raises:
            ValueError: The text is not an endpoint.
        """
        text = text.strip()
        if text == LOCAL:
            return cls(LOCAL, source)
        if source == "COLAB_TPU_ADDR" or _LIKE_AN_ADDRESS.search(text):
            addresses = tuple(_parse_address(part.strip()) for part in text.split(","))
            return cls(",".join(f"{_PREFIX}{host}:{port}" for host, port in addresses), source, addresses)
        if not _NAME.fullmatch(text):
            raise ValueError(f"{text!r} is neither {LOCAL}, an address {_PREFIX}HOST:{PORT} nor a name")
        return cls(text, source)

    @classmethod
    def find(cls, tpu: str, environment: Mapping[str, str]) -> Self | None:
        """The endpoint of a plan or else of the environment; ``None`` if neither sets one.

        Raises:
            UsageError: The text is not an endpoint; the message starts with its source.
        """
        texts = {"--tpu": tpu} | {name: environment.get(name, "") for name in VARIABLES}
        for source, text in texts.items():
            if text.strip():
                try:
                    return cls.parse(text, source)
                except ValueError as error:
                    raise UsageError(f"{source}: {error}") from error
        return None

    @property
    def local(self) -> bool:
        """Whether it refers to the chips in this machine."""
        return self.target == LOCAL

    def connection_problem(self) -> str:
        """Why the TPU is unreachable; empty if it is reachable or its address is unknown.

        Takes up to :data:`PROBE_TIMEOUT_SECONDS` seconds per address.
        """
        return next((problem for place in self.addresses if (problem := _connection_problem(*place))), "")


def _parse_address(text: str) -> tuple[str, int]:
    match = _ADDRESS.fullmatch(text)
    if match is None or not 0 < int(match[2] or PORT) < 2**16:
        raise ValueError(f"{text!r} is not an address: use {_PREFIX}HOST:{PORT}")
    return match[1], int(match[2] or PORT)


def _connection_problem(host: str, port: int) -> str:
    try:
        socket.create_connection((host, port), timeout=PROBE_TIMEOUT_SECONDS).close()
    except TimeoutError:
        return f"{host} does not answer on port {port} within {PROBE_TIMEOUT_SECONDS:g} s"
    except ConnectionRefusedError:
        return f"{host} refuses connections on port {port}"
    except socket.gaierror:
        return f"unknown host {host}"
    except OSError as error:
        return f"{host} is unreachable on port {port}: {error.strerror or error}"
    return ""
