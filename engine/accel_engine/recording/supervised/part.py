"""Records a part of the run of a script that ``accel-tui run`` has started, through the run's supervisor.

The supervisor is another process (:mod:`accel_engine.scripts`), so the script may fork, close all descriptors or be
killed without damage to the run.
"""

import fcntl
import os
import socket
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import astuple

from accel_engine.errors import RunError
from accel_engine.events import Event, RunStarted, Warned, to_stored
from accel_engine.recording import supervised
from accel_engine.recording.supervised.wire import Message, MessageReader, pack_message
from accel_engine.run.engine.commands import Command

if TYPE_CHECKING:
    import numpy.typing as npt

    from accel_engine.devices.device_types import Sample
    from accel_engine.run.media import MediaItem

REPLY_SECONDS = 3.0
"""How long to wait for the supervisor. After it has not answered the beginning of a part, no other part is begun."""

LOWEST_DESCRIPTOR = 1000
"""The connection has this descriptor or a higher one, which a script that closes and reuses low ones does not meet."""

_silent = threading.Event()
"""Set when the supervisor has not answered the beginning of a part."""


def begin(values: Mapping[str, Any]) -> "ScriptPart | None":
    """Begin a part of the script's run; ``None`` if ``accel-tui run`` has not started the script.

    Args:
        values: The known fields of a plan.

    Raises:
        RunError: Another part is being recorded, or the supervisor does not answer.
    """
    return ScriptPart(values) if supervised.address else None


def report(message: str) -> bool:
    """Write a message to the log of the script's run; return whether there is one."""
    if supervised.address:
        with suppress(OSError), _connect() as connection:
            connection.sendall(pack_message({"report": message}))
            return True
    return False


class ScriptPart:
    """One part of a script's run: a ``fit``, or a recorder's loop.

    It has the methods of :class:`accel_engine.run.writing.writer.RunWriter`, and all but ``__init__`` are called in
    the recorder thread. If the script closes the connection, e.g. with all its descriptors, it is opened again.

    Args:
        values: The known fields of a plan.

    Attributes:
        directory: The run's directory.
        step: Steps taken in the run before the part.
        epochs: Epochs ended in the run before the part.

    Raises:
        RunError: Another part is being recorded, or the supervisor does not answer. All methods raise it, too.
    """

    samples_devices = False

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._connection: socket.socket | None = None
        self._pending: list[Command] = []
        try:
            reply = self._open({"begin": dict(values)})
        except (OSError, ValueError) as error:
            if isinstance(error, TimeoutError):
                _silent.set()
            raise RunError(f"the supervisor of the run does not answer: {error}") from error
        if problem := reply.get("problem"):
            self.close()
            raise RunError(problem)
        self._number = int(reply["part"])
        self.directory = Path(reply["directory"])
        self.step = int(reply["step"])
        self.epochs = int(reply["epochs"])

    def open(self, started: RunStarted) -> "ScriptPart":
        """Return the part itself, which has begun."""
        del started
        return self

    def write_event(self, event: Event) -> None:
        """Add an event; a warning goes to the log, too."""
        if isinstance(event, Warned):
            self._send({"report": event.message})
            return
        self._send({"event": event.kind(), "time": event.time, "body": to_stored(event)})

    def write_chunk(self, first_step: int, started: float, ended: float, series: "Mapping[str, npt.ArrayLike]") -> None:
        """Add consecutive steps."""
        import numpy as np  # slow to import, and not needed before the first steps

        packed = [np.asarray(values, dtype="<f4").tobytes() for values in series.values()]
        values = {"chunk": first_step, "started": started, "ended": ended, "series": list(series)}
        self._send(values, b"".join(packed))

    def write_samples(self, samples: "Sequence[Sample]") -> None:
        """Do nothing: the supervisor samples the devices."""

    def write_media(self, step: int, time: float, name: str, item: "MediaItem") -> None:
        """Add an image, a text or a histogram."""
        from accel_engine.run import media

        kind, head, body = media.pack_media(item)
        self._send({"media": name, "step": step, "time": time, "kind": kind, "head": head}, body)

    def heartbeat(self) -> None:
        """Check the connection."""
        self._receive()

    def commands(self) -> list[Command]:
        """Return the commands without an answer, oldest first."""
        self._receive()
        return list(self._pending)

    def answer(self, command: Command, *, obeyed: bool, answer: str) -> None:
        """Answer a command."""
        self._pending = [each for each in self._pending if each.id != command.id]
        self._send({"answer": astuple(command), "obeyed": obeyed, "text": answer})

    def end(self, ended: Event) -> None:
        """End the part, and wait until the supervisor has written all of it."""
        self._send({"end": to_stored(ended), "time": ended.time})
        with suppress(OSError, ValueError):  # then the supervisor ends the part with the script
            while (message := self._reader.read()) and "ended" not in message[0]:
                pass
        self.close()

    def close(self) -> None:
        """Close the connection, unless its descriptor has become another file."""
        connection, self._connection = self._connection, None
        if connection and self._is_open(connection):
            connection.close()
        elif connection:
            connection.detach()

    def _open(self, first: dict[str, Any]) -> dict[str, Any]:
        """Connect, send a first message and return its answer."""
        connection = _connect()
        try:
            file = os.fstat(connection.fileno())
            connection.sendall(pack_message(first))
            reader = MessageReader(connection)
            message = reader.read()
            if message is None:
                raise OSError("the connection was closed")
        except BaseException:
            connection.close()
            raise
        connection.settimeout(None)  # a supervisor that waits for a disk accepts no more; the queue is bounded
        self._connection, self._reader, self._file = connection, reader, (file.st_dev, file.st_ino)
        return message[0]

    def _send(self, values: dict[str, Any], data: bytes = b"") -> None:
        message = pack_message(values, data)
        try:
            self._connected().sendall(message)
        except OSError:
            try:
                self._reconnect().sendall(message)
            except (OSError, ValueError) as error:
                raise RunError(f"the supervisor of the run cannot be reached: {error}") from error

    def _receive(self) -> None:
        try:
            self._connected()
            if not self._reader.receive():
                self._reconnect()
            while message := self._reader.next():
                self._take(message)
        except (OSError, ValueError) as error:
            raise RunError(f"the supervisor of the run cannot be reached: {error}") from error

    def _take(self, message: Message) -> None:
        if command := message[0].get("command"):
            self._pending.append(Command(*command))

    def _connected(self) -> socket.socket:
        """The open connection."""
        connection = self._connection
        return connection if connection and self._is_open(connection) else self._reconnect()

    def _reconnect(self) -> socket.socket:
        self.close()
        reply = self._open({"attach": self._number})
        if problem := reply.get("problem"):
            raise OSError(problem)
        assert self._connection  # noqa: S101 (_open has set it)
        return self._connection

    def _is_open(self, connection: socket.socket) -> bool:
        try:
            file = os.fstat(connection.fileno())
        except OSError:
            return False
        return (file.st_dev, file.st_ino) == self._file


def _connect() -> socket.socket:
    if _silent.is_set():
        raise OSError("it has not answered before")
    connection = _socket()
    try:
        connection.settimeout(REPLY_SECONDS)
        connection.connect(supervised.address)
    except BaseException:
        connection.close()
        raise
    return connection


def _socket() -> socket.socket:
    """A socket with a high descriptor, unless the limit of this process is lower."""
    low = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        descriptor = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, LOWEST_DESCRIPTOR)
    except OSError:
        return low
    low.close()
    return socket.socket(fileno=descriptor)
