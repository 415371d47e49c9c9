"""The messages between a script and the supervisor of its run, over a Unix socket.

A message is a JSON object and bytes, each after its length. The script sends what it records; the supervisor answers
``begin``, ``attach`` and ``end``, and sends commands.
"""

import json
import signal
import socket
import struct
from typing import Any

_LENGTHS = struct.Struct("<II")

MAX_MESSAGE_BYTES = 1 << 28
"""Maximum size of each part of a message; larger ones are not from a recorder."""

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
"""Signals to the command or to the supervisor that are meant for the script."""

Message = tuple[dict[str, Any], bytes]


def pack_message(values: dict[str, Any], data: bytes = b"") -> bytes:
    """Make a message of an object and bytes."""
    text = json.dumps(values).encode()
    return _LENGTHS.pack(len(text), len(data)) + text + data


class MessageReader:
    """Reads messages from a socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._received = bytearray()

    def read(self) -> Message | None:
        """Wait for the next message; ``None`` at the end of the connection, also within a message.

        Raises:
            OSError: The connection is broken, or nothing came within the socket's timeout.
            ValueError: What was received is not a message.
        """
        while (message := self.next()) is None:
            data = self._connection.recv(1 << 16)
            if not data:
                return None
            self._received += data
        return message

    def receive(self) -> bool:
        """Receive what there is without waiting, from a socket without a timeout; return whether it is open.

        Raises:
            OSError: The connection is broken.
        """
        try:
            while data := self._connection.recv(1 << 16, socket.MSG_DONTWAIT):
                self._received += data
        except BlockingIOError:
            return True
        return False

    def next(self) -> Message | None:
        """Take the next message from what was received.

        Raises:
            ValueError: What was received is not a message.
        """
        if len(self._received) < _LENGTHS.size:
            return None
        length, size = _LENGTHS.unpack_from(self._received)
        if max(length, size) > MAX_MESSAGE_BYTES:
            raise ValueError("not a message of a recorder")
        stop = _LENGTHS.size + length
        if len(self._received) < stop + size:
            return None
        values: dict[str, Any] = json.loads(self._received[_LENGTHS.size : stop])
        data = bytes(self._received[stop : stop + size])
        del self._received[: stop + size]
        return values, data
