"""The ``accel-tui run`` command in the foreground: it shows the script's output, and sends keys and signals.

The messages stand in :mod:`accel_engine.recording.recorder_messages`. It may exit at any time; the script continues.
"""

import socket
import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

from accel_engine.recording.recorder_messages import Message, MessageReader, pack_message
from accel_engine.scripts.script_process import TERMINAL

MAX_WAITING_BYTES = 4 << 20
"""Maximum output that waits for the command."""

SKIPPED = b"\r\naccel-tui: output is missing here, as the terminal did not respond; the log has all of it\r\n"


class AttachedTerminal:
    """The foreground command's end of the script's terminal and pipes; a thread sends.

    A terminal that takes no output, as over a broken connection, does not hold up the script: output is left out
    there. A pipe loses nothing: the script waits, as without accel-tui.

    Args:
        connection: Connected to the command.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reader = MessageReader(connection)
        self._messages: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._is_skipping = self._is_closing = False
        self._changed = threading.Condition()
        self.is_open = True
        """Whether the command is still there."""
        self._thread = threading.Thread(target=self._send_all, name="terminal", daemon=True)
        self._thread.start()

    def fileno(self) -> int:
        """The descriptor, for a selector."""
        return self._connection.fileno()

    def receive(self) -> list[Message]:
        """Return the messages that have arrived."""
        try:
            self.is_open = self._reader.receive() and self.is_open
        except OSError:
            self.is_open = False
        messages: list[Message] = []
        while message := self._reader.next():
            messages.append(message)
        return messages

    def show(self, source: str, data: bytes) -> None:
        """Send output of a stream."""
        with self._changed:
            if source != TERMINAL:
                self._changed.wait_for(lambda: self._waiting_bytes < MAX_WAITING_BYTES or not self.is_open)
            elif self._waiting_bytes >= MAX_WAITING_BYTES:
                if not self._is_skipping:
                    self._put({"output": source}, SKIPPED)
                self._is_skipping = True
                return
            self._is_skipping = False
            self._put({"output": source}, data)

    def send(self, values: Mapping[str, Any]) -> None:
        """Send a message."""
        with self._changed:
            self._put(values)

    def close(self) -> None:
        """Wait until all is sent, or the command is gone."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join()
        self._connection.close()

    def _put(self, values: Mapping[str, Any], data: bytes = b"") -> None:
        self._messages.append(pack_message(dict(values), data))
        self._waiting_bytes += len(self._messages[-1])
        self._changed.notify_all()

    def _send_all(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._messages or self._is_closing)
                if not self._messages:
                    return
                message = self._messages.popleft()
            try:
                self._connection.sendall(message)
            except OSError:
                self.is_open = False
            with self._changed:
                self._waiting_bytes -= len(message)
                self._changed.notify_all()
