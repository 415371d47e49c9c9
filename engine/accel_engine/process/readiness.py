"""Being there for the other workers before TensorFlow is."""

import contextlib
import socket
import threading
from typing import Self

from accel_engine.errors import AccelError

_POLL_SECONDS = 0.2
"""How often it is looked whether the door is to be closed."""


class ReadinessListener:
    """Listens where TensorFlow's server will, and says a word to who knocks, until it is closed.

    TensorFlow waits for the other workers inside of a call that lets no other thread of the process run: no command
    would be taken, no heartbeat written, nobody missed. Each worker enters it only when all others are at their doors.

    Args:
        address: This process' own, ``host:port``; any interface of the machine is listened on, as TensorFlow does.

    Raises:
        AccelError: Its port cannot be listened on.
    """

    def __init__(self, address: str) -> None:
        port = int(address.rpartition(":")[2])
        both = socket.has_dualstack_ipv6()
        try:
            self._listener = socket.create_server(
                ("", port), family=socket.AF_INET6 if both else socket.AF_INET, dualstack_ipv6=both
            )
        except OSError as error:
            raise AccelError(f"cannot listen on port {port}, where the other workers seek this one: {error}") from error
        self._listener.settimeout(_POLL_SECONDS)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._answer, name="door", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join()
        self._listener.close()

    def _answer(self) -> None:
        while not self._closing.is_set():
            with contextlib.suppress(OSError):  # nobody came in time, or has left again
                who, _ = self._listener.accept()
                with who:
                    who.sendall(b"\0")
