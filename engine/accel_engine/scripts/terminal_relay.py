"""Copies a script's output to the log, the terminal and the parser, and the terminal's keys to the script."""

import os
import selectors
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from accel_engine.errors import cause_first
from accel_engine.files import open_log
from accel_engine.recording.recorder_messages import Message
from accel_engine.run.directory.log_file import OWN_PREFIX, LogFile
from accel_engine.scripts.attached_terminal import AttachedTerminal
from accel_engine.scripts.output_parser import OutputParser, ParsedLine
from accel_engine.scripts.script_process import TERMINAL, Streams

LAST_BYTES = 1 << 14
"""How much of the end of the output is kept, to say why a script failed."""


class OutputLog:
    """Appends output to a log file; what a full disk does not take is counted, and never ends the script.

    Args:
        path: The log file.
    """

    def __init__(self, path: Path) -> None:
        self._file = LogFile(open_log(path))
        self._carriage_return = b""

    def write(self, data: bytes, *, terminal: bool = False) -> None:
        """Append output.

        Args:
            data: The output.
            terminal: Whether it went through a terminal, which ends lines with a carriage return.
        """
        if terminal:
            data = self._carriage_return + data
            self._carriage_return = b"\r" if data.endswith(b"\r") else b""
            data = data.removesuffix(b"\r").replace(b"\r\n", b"\n")
        self._file.write(data)

    def note(self, text: str) -> None:
        """Append a line of accel-tui's own."""
        self._file.write(f"{OWN_PREFIX}{text}\n".encode())

    def close(self) -> None:
        """Close the file."""
        os.close(self._file.fileno())


class TerminalRelay:
    """Copies in a thread, which never waits for the run's database, until the output ends.

    Args:
        streams: The script's streams.
        log: Gets all output.
        parser: Gets all output.
        attached: Shows the output; ``None`` if the script runs in the background.
        on_lines: Called with the values that the parser finds.
        on_message: Called with each other message of the attached terminal.
    """

    def __init__(
        self,
        streams: Streams,
        log: OutputLog,
        parser: OutputParser,
        attached: AttachedTerminal | None,
        on_lines: Callable[[list[ParsedLine]], None],
        on_message: Callable[[Message], None],
    ) -> None:
        self._streams = streams
        self._log = log
        self._parser = parser
        self._attached = attached
        self._on_lines = on_lines
        self._on_message = on_message
        self._open = dict(streams.sources)
        self._keys = b""
        self._last = b""
        self._selector = selectors.DefaultSelector()
        for name, descriptor in streams.sources.items():
            self._selector.register(descriptor, selectors.EVENT_READ, name)
        if attached:
            self._selector.register(attached, selectors.EVENT_READ, attached)
        if streams.terminal is not None:
            os.set_blocking(streams.terminal, False)
        self._thread = threading.Thread(target=self._copy, name="output", daemon=True)

    def start(self) -> None:
        """Start copying."""
        self._thread.start()

    def wait(self, seconds: float | None) -> bool:
        """Wait for the end of the output; children of the script may keep it open. Returns whether it has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    @property
    def last_words(self) -> str:
        """Why the script failed, by the end of its output; see :func:`end_of_output`."""
        return end_of_output(self._last.decode(errors="replace"))

    def _copy(self) -> None:
        while self._open:
            for key, events in self._selector.select():
                if key.data is self._attached:
                    self._receive()
                elif key.data not in self._open:  # closed a moment ago
                    continue
                elif events & selectors.EVENT_READ and not self._read(key.data, key.fd):
                    self._close(key.data)
                elif events & selectors.EVENT_WRITE:
                    self._write_keys()
        self._on_lines(self._parser.finish())

    def _read(self, source: str, descriptor: int) -> bool:
        """Copy what a stream has; return whether it is open."""
        try:
            data = os.read(descriptor, 1 << 16)
        except BlockingIOError:
            return True
        except OSError:  # no process has the terminal open any more
            data = b""
        if not data:
            return False
        self._log.write(data, terminal=source == TERMINAL)
        self._last = (self._last + data)[-LAST_BYTES:]
        if self._attached:
            self._attached.show(source, data)
        if lines := self._parser.feed(source, data):
            self._on_lines(lines)
        return True

    def _receive(self) -> None:
        assert self._attached  # noqa: S101 (it was registered)
        for message in self._attached.receive():
            if "keys" in message[0]:
                self._keys += message[1]
                self._write_keys()
            elif (source := message[0].get("closed")) in self._open:
                self._close(source)
            else:
                self._on_message(message)
        if not self._attached.is_open:
            self._selector.unregister(self._attached)

    def _close(self, source: str) -> None:
        """Close a stream: a script that keeps writing to a pipe gets an error."""
        descriptor = self._open.pop(source)
        self._selector.unregister(descriptor)
        os.close(descriptor)

    def _write_keys(self) -> None:
        """Write keys to the script's terminal, as far as it takes them now."""
        terminal = self._streams.terminal
        if terminal is None or TERMINAL not in self._open:
            return
        with suppress(OSError):
            while self._keys:
                self._keys = self._keys[os.write(terminal, self._keys) :]
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._keys else 0)
        with suppress(KeyError):
            self._selector.modify(terminal, events, TERMINAL)


def end_of_output(output: str) -> str:
    """The end of an output: ``: ValueError: ...`` of the last traceback, or the last line as such."""
    *_, end = output.rpartition("Traceback (most recent call last):")
    lines = [line for line in end.splitlines() if line.strip()]
    if end != output and (exceptions := [line for line in lines if not line[0].isspace()]):
        message = cause_first("\n".join(lines[lines.index(exceptions[0]) :]))
        return ": " + message.splitlines()[0].strip()
    return f"; it last printed: {lines[-1].strip()}" if lines else ""
