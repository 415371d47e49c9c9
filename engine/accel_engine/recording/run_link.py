"""Sends what a recorder records to the supervisor, the process that writes the run (:mod:`accel_engine.scripts`).

The supervisor is another process, so the script may fork, close all descriptors or be killed without damage to the run,
and nothing that happens to the run ends the script.
"""

import fcntl
import os
import socket
import struct
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import astuple

from accel_engine.errors import RunError
from accel_engine.events import Event, Warned, to_stored
from accel_engine.recording import script, supervisor_address
from accel_engine.recording.recorder_messages import Message, MessageReader, pack_message
from accel_engine.run.directory.run_paths import runs_directory
from accel_engine.run.engine.commands import Command

if TYPE_CHECKING:
    import numpy.typing as npt

    from accel_engine.events import Phase
    from accel_engine.run.media import MediaItem

REPLY_SECONDS = 10.0
"""How long to wait for the supervisor. After it has not answered once, no other recording is begun."""

SEND_SECONDS = 60.0
"""How long the supervisor may take nothing. It waits for no disk before it receives, so then it hangs."""

LOWEST_DESCRIPTOR = 1000
"""The connection has this descriptor or a higher one, which a script that closes and reuses low ones does not meet."""

_silent = threading.Event()
"""Set when the supervisor has not answered."""


def report_to_run(message: str) -> bool:
    """Write a message to the log of the run that ``accel-tui run`` has created; return whether there is one."""
    if supervisor_address.given_address:
        with suppress(OSError), _connect(supervisor_address.given_address) as connection:
            connection.sendall(pack_message({"report": message}))
            return True
    return False


class RunLink:
    """The link of one recorder to the supervisor: a run, or a part of the run that ``accel-tui run`` has created.

    It has methods of :class:`accel_engine.run.writing.writer.RunWriter`, and all but ``__init__`` are called in the
    recorder thread. If the script closes the connection, e.g. with all its descriptors, it is opened again.

    Args:
        values: The known fields of a plan.
        directory: The run to continue; ``None`` for a new one. ``accel-tui run`` ignores it, ``step`` and ``epochs``.
        step: Steps taken in the run to continue.
        epochs: Epochs ended in the run to continue.

    Attributes:
        directory: The run's directory.
        step: Steps taken in the run before.
        epochs: Epochs ended in the run before.

    Raises:
        RunError: The run cannot be created, another part is being recorded, or there is no supervisor. All methods
            raise it if recording has ended.
    """

    def __init__(
        self, values: Mapping[str, Any], directory: Path | None = None, step: int = 0, epochs: int = 0
    ) -> None:
        self._connection: socket.socket | None = None
        self._pending: list[Command] = []
        first = {
            "begin": dict(values),
            "runs": os.path.abspath(runs_directory()),
            "run": str(directory or ""),
            "step": step,
            "epochs": epochs,
            "script": script.command(),
            "pid": os.getpid(),
        }
        reply = self._begin(first)
        if problem := reply.get("problem"):
            self.close()
            raise RunError(problem)
        self._number = int(reply["number"])
        self.directory = Path(reply["directory"])
        self.step = int(reply["step"])
        self.epochs = int(reply["epochs"])

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

    def write_media(self, step: int, time: float, name: str, item: "MediaItem") -> None:
        """Add an image, a text or a histogram."""
        from accel_engine.run import media

        kind, head, body = media.pack_media(item)
        self._send({"media": name, "step": step, "time": time, "kind": kind, "head": head}, body)

    def commands(self) -> list[Command]:
        """Return the commands without an answer, oldest first."""
        self._receive()
        return list(self._pending)

    def answer(self, command: Command, *, obeyed: bool, answer: str) -> None:
        """Answer a command."""
        self._pending = [each for each in self._pending if each.id != command.id]
        self._send({"answer": astuple(command), "obeyed": obeyed, "text": answer})

    def profiled(
        self,
        command: Command,
        folder: str,
        seconds: float,
        steps: int,
        entered: Sequence["tuple[Phase, int]"],
        notes: list[str],
    ) -> None:
        """Let the supervisor reduce a trace, store that, and answer the command.

        Args:
            command: The command that asked for it.
            folder: The folder of its files, within the run's directory.
            seconds: How long it took.
            steps: Steps meanwhile; 0 if unknown.
            entered: As in :class:`TraceFacts`.
            notes: What restricts its figures.
        """
        self._pending = [each for each in self._pending if each.id != command.id]
        values = {"folder": folder, "seconds": seconds, "steps": steps, "entered": entered, "notes": notes}
        self._send({"profiled": astuple(command), **values})

    def end(self, ended: Event) -> None:
        """End the recording, and wait until the supervisor has written all of it."""
        self._send({"end": to_stored(ended), "time": ended.time})
        with suppress(OSError, ValueError):  # then the supervisor ends it with the script
            while (message := self._reader.read()) and "ended" not in message[0]:
                self._take(message)
        self.close()

    def close(self) -> None:
        """Close the connection, unless its descriptor has become another file."""
        connection, self._connection = self._connection, None
        if connection and self._is_open(connection):
            connection.close()
        elif connection:
            connection.detach()

    def __del__(self) -> None:
        with suppress(Exception):  # Python would print it
            self.close()

    def _begin(self, first: dict[str, Any]) -> dict[str, Any]:
        """Send a first message to the supervisor, started if needed, and return its answer."""
        try:
            _check_answers()
            if address := supervisor_address.known_address():
                try:
                    return self._open(address, first)
                except (ConnectionError, FileNotFoundError):  # it has ended
                    if supervisor_address.given_address:
                        raise
            return self._open(supervisor_address.start_supervisor(), first)
        except (OSError, ValueError) as error:
            if isinstance(error, TimeoutError):
                _silent.set()
            raise RunError(f"the supervisor of the run does not answer: {error}") from error

    def _open(self, address: str, first: dict[str, Any]) -> dict[str, Any]:
        """Connect, send a first message and return its answer."""
        connection = _connect(address)
        try:
            file = os.fstat(connection.fileno())
            connection.sendall(pack_message(first))
            reader = MessageReader(connection)
            message = reader.read()
            if message is None:
                raise ConnectionError("the connection was closed")
        except BaseException as error:
            connection.close()
            if isinstance(error, TimeoutError):
                _silent.set()
            raise
        connection.settimeout(None)
        seconds = struct.pack("ll", int(SEND_SECONDS), 0)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, seconds)
        self._connection, self._reader, self._file = connection, reader, (file.st_dev, file.st_ino)
        self._address = address
        return message[0]

    def _send(self, values: dict[str, Any], data: bytes = b"") -> None:
        message = pack_message(values, data)
        try:
            self._connected().sendall(message)
        except OSError:
            try:
                self._reconnect().sendall(message)
            except (OSError, ValueError) as error:
                raise _unreachable(error) from error

    def _receive(self) -> None:
        try:
            self._connected()
            is_open = self._reader.receive()
            while message := self._reader.next():
                self._take(message)
            if not is_open:
                self._reconnect()
        except (OSError, ValueError) as error:
            raise _unreachable(error) from error

    def _take(self, message: Message) -> None:
        if command := message[0].get("command"):
            self._pending.append(Command(*command))
        elif reason := message[0].get("lost"):
            self.close()
            raise RunError(reason)

    def _connected(self) -> socket.socket:
        """The open connection."""
        connection = self._connection
        return connection if connection and self._is_open(connection) else self._reconnect()

    def _reconnect(self) -> socket.socket:
        self.close()
        reply = self._open(self._address, {"attach": self._number})
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


def _unreachable(error: Exception) -> RunError:
    reason = "it has ended" if isinstance(error, ConnectionError | FileNotFoundError) else error
    return RunError(f"the supervisor of the run cannot be reached: {reason}")


def _check_answers() -> None:
    if _silent.is_set():
        raise OSError("it has not answered before")


def _connect(address: str) -> socket.socket:
    _check_answers()
    connection = _socket()
    try:
        connection.settimeout(REPLY_SECONDS)
        connection.connect(address)
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
