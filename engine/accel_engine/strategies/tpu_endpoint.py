"""The ways to a TPU: the chips of this machine, an address, a name in Google Cloud; without TensorFlow."""

import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from accel_engine.errors import UsageError

LOCAL = "local"
"""What stands for the chips of this machine."""

VARIABLES = ("COLAB_TPU_ADDR", "TPU_NAME")
"""Where the environment may name a TPU; the first that is set counts."""

PORT = 8470
"""Where a TPU listens that is reached over the network, if its address names no port."""

CONNECT_SECONDS = 2.0
"""Seconds that an address may take to answer."""

_PREFIX = "grpc://"
_ADDRESS = re.compile(rf"(?:{_PREFIX})?([\w.-]+)(?::(\d{{1,5}}))?/?")
_LIKE_AN_ADDRESS = re.compile(r"[:,]|^[\d.]+$")
_NAME = re.compile(r"\w[\w./-]*")


@dataclass(frozen=True, slots=True)
class TpuEndpoint:
    """A endpoint to a TPU.

    Attributes:
        target: What TensorFlow's resolver takes: ``local``, ``grpc://HOST:PORT`` (one for each host of a TPU, with
            commas between), or a name in Google Cloud.
        source: Who said so: ``--tpu`` or a variable of the environment.
        addresses: Hosts and ports of an address.
    """

    target: str
    source: str
    addresses: tuple[tuple[str, int], ...] = ()

    @classmethod
    def parse(cls, text: str, source: str) -> Self:
        """Read a endpoint.

        Raises:
            ValueError: It is none, in words.
        """
        text = text.strip()
        if text == LOCAL:
            return cls(LOCAL, source)
        if source == "COLAB_TPU_ADDR" or _LIKE_AN_ADDRESS.search(text):
            addresses = tuple(_parse_address(part.strip()) for part in text.split(","))
            return cls(",".join(f"{_PREFIX}{host}:{port}" for host, port in addresses), source, addresses)
        if not _NAME.fullmatch(text):
            raise ValueError(f"{text!r} is neither {LOCAL}, nor an address {_PREFIX}HOST:{PORT}, nor a name")
        return cls(text, source)

    @classmethod
    def find(cls, tpu: str, environment: Mapping[str, str]) -> Self | None:
        """The endpoint that a plan names or, if it names none, the environment; ``None`` where nobody does.

        Raises:
            UsageError: What is named is no way; the text begins with who named it.
        """
        named = {"--tpu": tpu} | {name: environment.get(name, "") for name in VARIABLES}
        for source, text in named.items():
            if text.strip():
                try:
                    return cls.parse(text, source)
                except ValueError as error:
                    raise UsageError(f"{source}: {error}") from error
        return None

    @property
    def local(self) -> bool:
        """Whether it leads to the chips of this machine."""
        return self.target == LOCAL

    def connection_problem(self) -> str:
        """Why the TPU cannot be reached; empty when it can, or when only Google Cloud knows its address.

        Takes up to :data:`CONNECT_SECONDS` seconds a place.
        """
        return next((problem for place in self.addresses if (problem := _connection_problem(*place))), "")


def _parse_address(text: str) -> tuple[str, int]:
    match = _ADDRESS.fullmatch(text)
    if match is None or not 0 < int(match[2] or PORT) < 2**16:
        raise ValueError(f"{text!r} is no address: it should be {_PREFIX}HOST:{PORT}")
    return match[1], int(match[2] or PORT)


def _connection_problem(host: str, port: int) -> str:
    try:
        socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()
    except TimeoutError:
        return f"{host} does not answer on port {port} within {CONNECT_SECONDS:g} s"
    except ConnectionRefusedError:
        return f"{host} is there, but nothing listens on its port {port}"
    except socket.gaierror:
        return f"there is no host {host}"
    except OSError as error:
        return f"{host} cannot be reached on port {port}: {error.strerror or error}"
    return ""
