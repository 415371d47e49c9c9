"""Accepts connections from the other workers before TensorFlow's server does."""

import contextlib
import ipaddress
import socket
import threading
from typing import Self

from accel_engine.errors import AccelError

_POLL_SECONDS = 0.2
"""How often the thread checks whether to stop."""


class ReadinessListener:
    """Listens on the port of TensorFlow's server and answers every connection with a byte, until closed.

    TensorFlow waits for the other workers in a call that blocks all threads of the process: no commands would be
    handled and no heartbeat written. So each worker makes that call only when all others accept connections.

    Args:
        address: This process's address, ``host:port``. Unless it is on the loopback interface, listens on all
            interfaces, as TensorFlow does: it may be the address of a router.

    Raises:
        AccelError: The port cannot be listened on.
    """

    def __init__(self, address: str) -> None:
        name, _, text = address.rpartition(":")
        host, port = _loopback(name.strip("[]")), int(text)
        both = not host and socket.has_dualstack_ipv6()
        try:
            self._listener = socket.create_server(
                (host, port), family=socket.AF_INET6 if both or ":" in host else socket.AF_INET, dualstack_ipv6=both
            )
        except OSError as error:
            raise AccelError(f"cannot listen on port {port}, to which the other workers connect: {error}") from error
        self._listener.settimeout(_POLL_SECONDS)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._answer, name="readiness", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join()
        self._listener.close()

    def _answer(self) -> None:
        while not self._closing.is_set():
            with contextlib.suppress(OSError):  # no connection in time, or it is closed again
                connection, _ = self._listener.accept()
                with connection:
                    connection.sendall(b"\0")


def _loopback(host: str) -> str:
    """A host that is an address of the loopback interface; else empty."""
    with contextlib.suppress(ValueError):
        return host if ipaddress.ip_address(host).is_loopback else ""
    return ""
