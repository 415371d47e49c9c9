"""Accepts connections from the other workers before TensorFlow's server does."""

import contextlib
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
        address: This process's address, ``host:port``; listens on all interfaces, as TensorFlow does.

    Raises:
        AccelError: The port cannot be listened on.
    """

    def __init__(self, address: str) -> None:
        port = int(address.rpartition(":")[2])
        both = socket.has_dualstack_ipv6()
        try:
            self._listener = socket.create_server(
                ("", port), family=socket.AF_INET6 if both else socket.AF_INET, dualstack_ipv6=both
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
