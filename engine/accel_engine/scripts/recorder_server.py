"""Listens for the recorders in a script, receives what they send, and sends them commands."""

import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec.structs import astuple

from accel_engine import clock
from accel_engine.errors import AccelError, RunError, format_error
from accel_engine.events import EpochEnded, Event, Outcome, Phase, RunEnded, from_stored
from accel_engine.recording.recorder_messages import Message, MessageReader, pack_message
from accel_engine.run import media
from accel_engine.run.engine.commands import Command
from accel_engine.run.engine.memory_loss import count_kills
from accel_engine.run.engine.process_identity import ProcessIdentity
from accel_engine.scripts.listener import Listener
from accel_engine.scripts.supervised_run import SupervisedRun

ATTACH_SECONDS = 2.0
"""How long a new connection of a recorder waits for the rest of the previous one."""

DRAIN_SECONDS = 1.0
"""How long the rest of what an ended process has sent may take: its children may keep the connection open."""

LEFT_SECONDS = 60.0
"""How long a recorder in a live process may be without a connection: a call of C code may keep it from another one."""

MEMORY = "the system may have ended it for lack of memory: see the kernel's log (dmesg)"

LEFT = "the script ended without ending the recording: it was killed, has crashed, or called os._exit"


class Recording:
    """The messages of one recorder, from its beginning to its end: a run, or a part of one.

    Args:
        number: Its number.
        run: Receives it.
        pid: The recorder's process.

    Attributes:
        answer: The answer to the recorder's first message.
        is_ending: Whether nothing more is received.
        is_over: Whether all of it is written, or cannot be.
    """

    def __init__(self, number: int, run: SupervisedRun, pid: int) -> None:
        self.number = number
        self.run = run
        self.pid = pid
        self.is_over = self.is_ending = False
        self._began = clock.now()
        directory = str(run.directory)
        self.answer = {"number": number, "step": run.step, "epochs": run.epochs, "directory": directory}
        self._process = ProcessIdentity.of(pid)
        self._kills = count_kills()
        self._epoch: EpochEnded | None = None
        self._changing = threading.Lock()
        self._connection: _Connection | None = None
        self._forwarded: dict[int, Command] = {}
        self._left_at: float | None = None

    def connect(self, connection: "_Connection", answer: dict[str, Any]) -> None:
        """Send the answer to the first message of a connection, and take that for all that follows."""
        with self._changing:
            # Before the answer: what follows that, such as another connection, waits for what this one has sent.
            self._connection, self._forwarded = connection, {}
            connection.send(answer)

    def forward(self, command: Command) -> bool:
        """Send a command to the recorder; return whether it gets it."""
        with self._changing:
            if command.id in self._forwarded:
                return True
            if self._connection is None:
                return True  # it is sent the next time
            if self.is_ending or not self._connection.send({"command": astuple(command)}):
                return False
            self._forwarded[command.id] = command
            return True

    def handle(self, connection: "_Connection", message: Message) -> None:
        """Take a message of its recorder."""
        run, (values, data) = self.run, message
        if self.is_ending or connection is not self._connection:
            return
        if "event" in values:
            self._write_event(from_stored(values["event"], values["time"], values["body"]))
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
        elif "profiled" in values:
            command = Command(*values["profiled"])
            with self._changing:
                self._forwarded.pop(command.id, None)
            self._reduce_profile(command, values)
        elif "end" in values:
            ended = from_stored(RunEnded.kind(), values["time"], values["end"])
            assert isinstance(ended, RunEnded)  # noqa: S101 (its kind)
            self._end(ended)
            connection.send({"ended": True})

    def check_run(self) -> None:
        """Tell the recorder if nothing can be written any more."""
        if self.run.failure and not self.is_ending:
            self.is_ending = self.is_over = True
            if self._connection:
                self._connection.send({"lost": self.run.failure})
            self.run.close()

    def check_recorder(self) -> None:
        """End it if its recorder is gone."""
        if self.is_ending:
            return
        if not self._process.alive:
            self._end_in_thread(LEFT)
        elif not self._connection or not self._connection.done.is_set():
            self._left_at = None
        elif self._left_at is None:
            self._left_at = time.monotonic()
        elif time.monotonic() > self._left_at + LEFT_SECONDS:
            self._end_in_thread("the script has closed the connection of its recorder")

    def end_left(self, reason: str) -> None:
        """End it, unless its recorder has; waits until all is written, or cannot be."""
        self.drain(DRAIN_SECONDS)
        now = clock.now()
        ended = RunEnded(
            time=now,
            outcome=Outcome.FAILED,
            steps=self.run.step,
            epochs=self.run.epochs,
            seconds=now - self._began,
            metrics=self._epoch.metrics if self._epoch else {},
            reason=reason,
            hint=MEMORY if self._kills.has_risen() else "",
        )
        self._end(ended)

    def drain(self, seconds: float) -> None:
        """Wait until what its connection has sent is received."""
        if self._connection:
            self._connection.done.wait(seconds)

    def _reduce_profile(self, command: Command, values: dict[str, Any]) -> None:
        """Reduce a trace here, where that slows the script less than in its process; what follows waits."""
        from accel_engine.op_profile.options import check_trace_size, traced_text  # seldom needed
        from accel_engine.op_profile.reduction import TraceFacts, reduce_trace

        run, folder = self.run, str(values["folder"])
        try:
            if not (run.directory / folder).resolve().is_relative_to(run.directory.resolve()):
                raise RunError(f"the trace {folder} is not in the run's directory")
            check_trace_size(run.directory / folder)
            notes = tuple(map(str, values["notes"]))
            entered = tuple((Phase(phase), int(at)) for phase, at in values["entered"])
            facts = TraceFacts(int(values["steps"]) or None, entered=entered, notes=notes, path=folder)
            found = reduce_trace(run.directory / folder, facts)
            if not found.operations:
                raise RunError("the trace has no operations of TensorFlow in training: profile more seconds")
            run.write_diagnostics(found)
            run.answer_for_recorder(command, traced_text(found, float(values["seconds"])), obeyed=True)
        except Exception as error:  # noqa: BLE001 (the recording continues)
            run.warn(f"not profiled: {format_error(error)}")
            run.answer_for_recorder(command, format_error(error), obeyed=False)

    def _end_in_thread(self, reason: str) -> None:
        """End it without waiting for the disk."""
        threading.Thread(target=self.end_left, args=[reason], name="end", daemon=True).start()

    def _write_event(self, event: Event) -> None:
        if isinstance(event, EpochEnded):
            self._epoch = event
        self.run.write_event(event)

    def _end(self, ended: RunEnded) -> None:
        with self._changing:
            if self.is_ending:
                return
            self.is_ending = True
            unanswered, self._forwarded = [*self._forwarded.values()], {}
        self.run.end_part(ended, unanswered)
        self.is_over = True


class RecorderServer:
    """Accepts recorders in a thread, as long as the listener is open.

    Args:
        listener: Where the recorders connect.
        begin: Begins a recording for the first message of a recorder; raises an :exc:`AccelError` if it cannot.
        report: Called with each problem that a script tells, for the log.
    """

    def __init__(
        self, listener: Listener, begin: Callable[[dict[str, Any]], Recording], report: Callable[[str], None]
    ) -> None:
        self._listener = listener
        self._begin = begin
        self._report = report
        self._recordings: list[Recording] = []
        self._changing = threading.Lock()
        threading.Thread(target=self._accept, name="recorders", daemon=True).start()

    @property
    def recordings(self) -> list[Recording]:
        """The recordings that have not ended."""
        with self._changing:
            self._recordings = [each for each in self._recordings if not each.is_over]
            return [*self._recordings]

    def forward(self, command: Command) -> bool:
        """Send a command to the part that is being recorded; return whether there is one."""
        return any(recording.forward(command) for recording in self.recordings)

    def check(self, waited_for: int = 0) -> None:
        """End the recordings whose runs or recorders are gone.

        Args:
            waited_for: A process whose end its parent handles.
        """
        for recording in self.recordings:
            recording.check_run()
            if recording.pid != waited_for:
                recording.check_recorder()

    def drain(self) -> None:
        """Wait until what the script has sent before its end is received."""
        for recording in self.recordings:
            recording.drain(DRAIN_SECONDS)

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except OSError:  # closed
                return
            handler = _Connection(connection, self._open, self._report)
            threading.Thread(target=handler.serve, name="recorder", daemon=True).start()

    def _open(self, values: dict[str, Any]) -> tuple[Recording | None, dict[str, Any]]:
        """The recording of a first message, and the answer."""
        if "attach" in values:
            number = values["attach"]
            found = next((each for each in self.recordings if each.number == number), None)
            if found is None:
                return None, {"problem": "the recording has ended"}
            found.drain(ATTACH_SECONDS)
            return found, {}
        try:
            recording = self._begin(values)
        except AccelError as error:
            return None, {"problem": str(error)}
        with self._changing:
            self._recordings.append(recording)
        return recording, recording.answer


class _Connection:
    """One connection of a recorder.

    Attributes:
        done: Set once all of it is received.
    """

    def __init__(
        self,
        connection: socket.socket,
        open_recording: Callable[[dict[str, Any]], tuple[Recording | None, dict[str, Any]]],
        report: Callable[[str], None],
    ) -> None:
        self._connection = connection
        self._open = open_recording
        self._report = report
        self._sending = threading.Lock()
        self.done = threading.Event()

    def serve(self) -> None:
        """Handle the messages until the connection ends, and close it."""
        try:
            self._handle_messages()
        finally:  # also where a problem cannot be reported
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

    def _handle_messages(self) -> None:
        reader = MessageReader(self._connection)
        recording: Recording | None = None
        try:
            while message := reader.read():
                values = message[0]
                if "begin" in values or "attach" in values:
                    recording, answer = self._open(values)
                    if recording:
                        recording.connect(self, answer)
                    else:
                        self.send(answer)
                elif "report" in values:
                    (recording.run.warn if recording else self._report)(str(values["report"]))
                elif recording:
                    recording.handle(self, message)
        except OSError:  # the script has ended
            pass
        except Exception as error:  # noqa: BLE001 (whatever was sent, others are received)
            report = recording.run.warn if recording else self._report
            report(f"a recorder has sent what cannot be recorded: {format_error(error)}")
