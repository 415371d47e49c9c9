"""The socket to which the recorders in a script connect."""

import socket
import tempfile
from pathlib import Path


class Listener:
    """Listens on a Unix socket in a directory that only this user can enter.

    Attributes:
        address: Path of the socket. It is short, as paths of sockets have at most about 100 bytes.
    """

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="accel-tui-")
        self.address = str(Path(self._directory.name) / "run")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(self.address)
        self._socket.listen()

    def accept(self) -> socket.socket:
        """Wait for a connection.

        Raises:
            OSError: The listener is closed.
        """
        return self._socket.accept()[0]

    def close(self) -> None:
        """Stop listening, and delete the socket."""
        self._socket.close()
        self._directory.cleanup()
