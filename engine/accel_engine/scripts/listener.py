"""Where the recorders in a script connect to the supervisor of its run."""

import os
import socket
import tempfile
from pathlib import Path

MAX_DIRECTORY_BYTES = 90
"""Maximum length of the socket's directory: a socket's path has at most about 100 bytes."""


class Listener:
    """Listens on a Unix socket in a directory that only this user can enter.

    Attributes:
        address: Path of the socket.
    """

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="accel-tui-")
        if len(os.fsencode(self._directory.name)) > MAX_DIRECTORY_BYTES:
            self._directory.cleanup()
            self._directory = tempfile.TemporaryDirectory(prefix="accel-tui-", dir="/tmp")
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
