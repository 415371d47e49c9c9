"""The ``accel-tui run`` command in the foreground: it shows the script's output, and sends keys and signals.

The messages are those of :mod:`accel_engine.recording.supervised.wire`. It may go away at any time; the script goes on.
"""

import socket
from collections.abc import Mapping
from typing import Any

from accel_engine.recording.supervised.wire import Message, MessageReader, pack

STALLED_SECONDS = 5.0
"""How long a terminal may take no output, e.g. over a broken connection, before output is left out there."""


class AttachedTerminal:
    """The foreground command's end of the script's terminal and pipes.

    Args:
        connection: Connected to the command.
        is_terminal: Whether the output goes to a terminal: if that hangs, the script does not wait for it.
            A pipe loses nothing: the script waits, as without accel-tui.
    """

    def __init__(self, connection: socket.socket, *, is_terminal: bool) -> None:
        self._connection = connection
        self._reader = MessageReader(connection)
        self._is_stalled = False
        self.is_open = True
        """Whether the command is still there."""
        if is_terminal:
            connection.settimeout(STALLED_SECONDS)

    def fileno(self) -> int:
        """The descriptor, for a selector."""
        return self._connection.fileno()

    def receive(self) -> list[Message]:
        """Return the messages that have arrived."""
        timeout = self._connection.gettimeout()
        try:
            self.is_open = self._reader.receive()
        except OSError:
            self.is_open = False
        self._connection.settimeout(timeout)
        messages: list[Message] = []
        while message := self._reader.next():
            messages.append(message)
        return messages

    def show(self, source: str, data: bytes) -> None:
        """Send output of a stream."""
        if self._is_stalled:
            return
        self._send({"output": source}, data)

    def send(self, values: Mapping[str, Any]) -> None:
        """Send a message."""
        self._send(values, b"")

    def _send(self, values: Mapping[str, Any], data: bytes) -> None:
        if not self.is_open:
            return
        try:
            self._connection.sendall(pack(dict(values), data))
        except TimeoutError:
            self._is_stalled = True  # a part of a message is sent: nothing can follow
            self.is_open = False
        except OSError:
            self.is_open = False
