"""Supervises a script: copies its output, writes its run, forwards commands and signals, and records how it ends."""

import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from accel_engine.devices import Sampler
from accel_engine.errors import MAX_REASON_LENGTH
from accel_engine.events import Outcome
from accel_engine.recording.recorder_messages import FORWARDED, Message
from accel_engine.run.directory.run_paths import LOG
from accel_engine.run.engine.commands import Command
from accel_engine.run.engine.status import HEARTBEAT_SECONDS
from accel_engine.scripts.attached_terminal import AttachedTerminal
from accel_engine.scripts.listener import Listener
from accel_engine.scripts.output_parser import OutputParser
from accel_engine.scripts.parsed_part import ParsedPart
from accel_engine.scripts.recorder_server import MEMORY, RecorderServer
from accel_engine.scripts.script_process import TERMINAL, ScriptProcess, Streams
from accel_engine.scripts.script_run import ScriptRun
from accel_engine.scripts.terminal_relay import OutputLog, TerminalRelay

POLL_SECONDS = 0.05
"""How often the main thread looks after the script."""

COMMAND_SECONDS = 0.25
"""How often it reads commands."""

DRAIN_SECONDS = 1.0
"""How long the rest of the output may take after the script's end: its children may keep the streams open."""

END_SECONDS = 5.0
"""How long the foreground command waits for the run to be written; a full disk may take longer."""

INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
"""The signals to the script, one for each further command to stop now."""


ONLY_IN_FIT = {
    "pause": "only a fit can be paused",
    "resume": "only a fit can be paused and resumed",
    "learning_rate": "only the learning rate of a fit can be set",
    "checkpoint": "only the script can save checkpoints",
    "validate": "only the script can validate",
}
"""Why each other command has no effect outside of a fit."""

_INTERRUPTED = (0, 128 + signal.SIGINT, 128 + signal.SIGTERM, -signal.SIGINT, -signal.SIGTERM, -signal.SIGKILL)
"""How a script ends that was asked to by a signal."""


class ScriptSupervisor:
    """Supervises one script.

    Args:
        directory: The run's directory.
        script: The script.
        streams: Its streams.
        listener: Where its recorders connect.
        patterns: Patterns of values in its output.
        attached: The foreground command; ``None`` in the background.
    """

    def __init__(
        self,
        directory: Path,
        script: ScriptProcess,
        streams: Streams,
        listener: Listener,
        patterns: Sequence[str],
        attached: AttachedTerminal | None,
    ) -> None:
        self._script = script
        self._streams = streams
        self._listener = listener
        self._attached = attached
        self._signals: deque[tuple[int, bool]] = deque()
        self._log = OutputLog(directory / LOG)
        self._run = ScriptRun(directory, self._log.note)
        self._run.begin()  # before a part of a script that is already running
        self._server = RecorderServer(listener, self._run.begin_recording, self._run.warn)
        self._parsed = ParsedPart(self._run) if patterns else None
        add = self._parsed.add if self._parsed else lambda _: None
        self._copier = TerminalRelay(streams, self._log, OutputParser(patterns), attached, add, self._take)
        self._sampler = Sampler(self._run.write_samples, engine=script.pid)
        self._interruptions = 0
        self._has_killed = self._has_shown_failure = False
        self._interrupted = ""

    def run(self) -> None:
        """Supervise until the script has ended, and all that has its streams open."""
        for number in FORWARDED:
            signal.signal(number, lambda received, _: self._signals.append((received, False)))
        self._copier.start()
        self._sampler.start()
        command_due = beat_due = 0.0
        was_suspended = False
        while self._script.status is None:
            time.sleep(POLL_SECONDS)
            self._script.poll()
            while self._signals:
                received, is_for_group = self._signals.popleft()
                self._script.send(received, group=is_for_group)
            if self._attached and self._script.is_suspended and not was_suspended:
                self._attached.send({"suspended": True})
            was_suspended = self._script.is_suspended
            now = time.monotonic()
            try:
                if now >= command_due:
                    command_due = now + COMMAND_SECONDS
                    self._handle_commands()
                if now >= beat_due:
                    beat_due = now + HEARTBEAT_SECONDS
                    self._run.heartbeat()
                    self._server.check(self._script.pid)
                    self._show_failure()
            except Exception:  # noqa: BLE001 (a mistake of this program; the script continues)
                traceback.print_exc()
        self._end(self._script.status)

    def _take(self, message: Message) -> None:
        """Take a message of the foreground command; called in the copier's thread."""
        values = message[0]
        if size := values.get("size"):
            self._streams.resize(*size)
        elif number := values.get("signal"):
            self._signals.append((number, bool(values.get("group"))))
        elif values.get("resume"):
            self._script.resume()

    def _show_failure(self) -> None:
        """Tell the user once that recording has ended, as the log may be gone with the run."""
        if self._attached and self._run.failure and not self._has_shown_failure:
            self._has_shown_failure = True
            source = "stderr" if "stderr" in self._streams.sources else TERMINAL
            line_end = "\r\n" if source == TERMINAL else "\n"
            message = f"accel-tui: {self._run.failure}: nothing more is recorded; the script continues{line_end}"
            self._attached.show(source, message.encode())

    def _handle_commands(self) -> None:
        for command in self._run.commands():
            part = self._run.part
            if command.name == "stop" and command.argument not in (None, part and part.part):
                self._run.answer_for_recorder(command, f"part {command.argument:.0f} has ended already", obeyed=False)
            elif command.name == "stop_now" or not self._server.forward(command):
                self._handle(command)

    def _handle(self, command: Command) -> None:
        """Handle a command that is not for a part."""
        if command.name not in ("stop", "stop_now"):
            why = ONLY_IN_FIT.get(command.name, "a script has no such command")
            self._run.answer_for_recorder(command, f"no fit is running: {why}", obeyed=False)
            return
        number = signal.SIGINT
        if command.name == "stop_now":
            number = self._next_interruption
            self._interruptions += 1
        self._has_killed = self._has_killed or number == signal.SIGKILL
        self._interrupted = f"interrupt requested by {command.who}"
        self._script.send(number, group=number != signal.SIGTERM)
        after = "" if number == signal.SIGKILL else f"; accel-tui stop --now sends {self._next_interruption.name}"
        how = ", as Ctrl-C does" if number == signal.SIGINT else ""
        self._run.answer_for_recorder(command, f"sent {number.name} to the script{how}{after}", obeyed=True)

    @property
    def _next_interruption(self) -> signal.Signals:
        return INTERRUPTIONS[min(self._interruptions, len(INTERRUPTIONS) - 1)]

    def _end(self, status: int) -> None:
        self._copier.wait(DRAIN_SECONDS)
        self._server.drain()
        end = threading.Thread(target=self._write_end, args=(status,), name="end")
        end.start()
        end.join(END_SECONDS)
        if self._attached:
            self._attached.send({"exit": status, "open": not self._copier.wait(0)})
        self._listener.close()
        end.join()
        self._copier.wait(None)
        if self._attached:
            self._attached.close()
        self._log.close()

    def _write_end(self, status: int) -> None:
        self._sampler.stop()
        if self._parsed:
            self._parsed.finish()
        interrupted = self._interrupted if status != -signal.SIGKILL or self._has_killed else ""
        self._run.end(*ending_of(status, interrupted, self._run.stopped, self._copier.last_words))


def ending_of(status: int, interrupted: str, stopped: str, last_words: str) -> tuple[Outcome, str, str]:
    """The outcome of a script's run, its reason, and a hint.

    Args:
        status: The exit status, or the negative number of the signal that killed the script.
        interrupted: Who interrupted the script by a command; empty if nobody did.
        stopped: Who stopped the last part by a command; empty if nobody did.
        last_words: Why it failed, by its output.
    """
    if interrupted and status in _INTERRUPTED:
        return Outcome.STOPPED, interrupted, ""
    if status == 0:
        return (Outcome.STOPPED if stopped else Outcome.FINISHED), stopped, ""
    if -status == signal.SIGINT:
        return Outcome.STOPPED, "interrupted from the keyboard", ""
    if status < 0:
        name = (
            signal.Signals(-status).name
            if -status in signal.valid_signals() and -status < signal.SIGRTMIN
            else f"signal {-status}"
        )
        return Outcome.FAILED, f"the script was killed by {name}", MEMORY if -status == signal.SIGKILL else ""
    said = last_words[:MAX_REASON_LENGTH] if status == 1 else ""
    return Outcome.FAILED, f"the script exited with status {status}{said}", ""
