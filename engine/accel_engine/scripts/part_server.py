"""Listens for the recorders in a script, receives what they send, and sends them commands."""

import os
import socket
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import astuple

from accel_engine import clock
from accel_engine.errors import RunError, format_error
from accel_engine.events import Outcome, RunEnded, from_stored
from accel_engine.recording.supervised.wire import Message, MessageReader, pack_message
from accel_engine.run import media
from accel_engine.run.engine.commands import Command, answered
from accel_engine.scripts.script_run import ScriptRun

ATTACH_SECONDS = 2.0
"""How long a new connection of a part waits for the rest of the previous one."""


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


class PartServer:
    """Accepts recorders in a thread, as long as the listener is open.

    Args:
        listener: Where the recorders connect.
        run: Receives what they send.
    """

    def __init__(self, listener: Listener, run: ScriptRun) -> None:
        self._listener = listener
        self._run = run
        self._changing = threading.Lock()
        self._active: _Connection | None = None
        self._forwarded: dict[int, Command] = {}
        threading.Thread(target=self._accept, name="parts", daemon=True).start()

    def forward(self, command: Command) -> bool:
        """Send a command to the part that is being recorded; return whether there is one."""
        with self._changing:
            if command.id in self._forwarded:
                return True
            if self._active and self._active.send({"command": astuple(command)}):
                self._forwarded[command.id] = command
                return True
        return False

    def drain(self, seconds: float) -> None:
        """Wait until what the script has sent before its end is written.

        Args:
            seconds: How long to wait: a child of the script may have the connection open.
        """
        if active := self._active:
            active.done.wait(seconds)

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except OSError:  # closed
                return
            handler = _Connection(connection, self._begin, self._attach, self._handle, self._run.warn)
            threading.Thread(target=handler.serve, name="part", daemon=True).start()

    def _begin(self, connection: "_Connection", values: dict[str, Any]) -> dict[str, Any]:
        with self._changing:
            try:
                part = self._run.begin_part(values)
            except RunError as error:
                return {"problem": str(error)}
            self._active = connection
        return {"part": part.part, "step": part.step, "epochs": part.epoch, "directory": str(self._run.directory)}

    def _attach(self, connection: "_Connection", number: int) -> dict[str, Any]:
        previous = self._active
        if previous is None or not self._run.part or self._run.part.part != number:
            return {"problem": f"part {number} has ended"}
        previous.done.wait(ATTACH_SECONDS)
        with self._changing:
            self._active, self._forwarded = connection, {}
        return {}

    def _handle(self, connection: "_Connection", message: Message) -> None:
        run, (values, data) = self._run, message
        if "report" in values:
            run.warn(str(values["report"]))
        elif connection is not self._active:
            return
        elif "event" in values:
            run.write_event(from_stored(values["event"], values["time"], values["body"]))
        elif "chunk" in values:
            names = values["series"]
            columns = np.frombuffer(data, dtype="<f4").reshape(len(names), -1)
            run.write_chunk(values["chunk"], values["started"], values["ended"], dict(zip(names, columns, strict=True)))
        elif "media" in values:
            item = media.unpack_media(values["kind"], values["head"], data)
            run.write_media(values["step"], values["time"], values["media"], item)
        elif "answer" in values:
            command = Command(*values["answer"])
            run.answer(command, obeyed=bool(values["obeyed"]), answer=str(values["text"]))
            with self._changing:
                self._forwarded.pop(command.id, None)
        elif "end" in values:
            ended = from_stored(RunEnded.kind(), values["time"], values["end"])
            assert isinstance(ended, RunEnded)  # noqa: S101 (its kind)
            self._end(connection, ended)

    def _end(self, connection: "_Connection", ended: RunEnded) -> None:
        with self._changing:
            unanswered, self._forwarded = [*self._forwarded.values()], {}
            self._active = None
        for command in unanswered:
            obeyed = command.name == "stop" and ended.outcome is Outcome.STOPPED
            answer_command(self._run, command, "the part has ended", obeyed=obeyed)
        self._run.end_part(ended)
        connection.send({"ended": True})


class _Connection:
    """One connection of a recorder."""

    def __init__(
        self,
        connection: socket.socket,
        begin: Callable[["_Connection", dict[str, Any]], dict[str, Any]],
        attach: Callable[["_Connection", int], dict[str, Any]],
        handle: Callable[["_Connection", Message], None],
        report: Callable[[str], None],
    ) -> None:
        self._connection = connection
        self._begin = begin
        self._attach = attach
        self._handle = handle
        self._report = report
        self._sending = threading.Lock()
        self.done = threading.Event()

    def serve(self) -> None:
        """Handle the messages until the connection ends."""
        reader = MessageReader(self._connection)
        try:
            while message := reader.read():
                values = message[0]
                if "begin" in values:
                    self.send(self._begin(self, values["begin"]))
                elif "attach" in values:
                    self.send(self._attach(self, values["attach"]))
                else:
                    self._handle(self, message)
        except OSError:  # the script has ended
            pass
        except Exception as error:  # noqa: BLE001 (whatever was sent, others are received)
            self._report(f"a recorder has sent what cannot be recorded: {format_error(error)}")
        self.done.set()
        self._connection.close()

    def send(self, values: dict[str, Any]) -> bool:
        """Send a message; return whether it could be sent."""
        try:
            with self._sending:
                self._connection.sendall(pack_message(values))
        except OSError:
            return False
        return True


def answer_command(run: ScriptRun, command: Command, answer: str, *, obeyed: bool) -> None:
    """Answer a command, and record the answer."""
    run.answer(command, obeyed=obeyed, answer=answer)
    run.write_event(answered(command, clock.now(), run.step, answer, obeyed=obeyed))
