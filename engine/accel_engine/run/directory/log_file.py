"""Writes to the log of a run, where a full disk ends nothing, and finds the messages of native code in it."""

import io
import os
import re
import sys
from contextlib import suppress
from pathlib import Path

from accel_engine.files import open_log
from accel_engine.run.directory.run_paths import LOG
from accel_engine.text import truncated

OWN_PREFIX = "accel-tui: "
"""Begins the lines of a log that this program wrote, not the run."""

_AT_EVERY_START = re.compile(r"I\d{4} |WARNING: All log messages before absl::InitializeLog")
"""Begins the lines that TensorFlow writes at every start."""

FATAL = re.compile(r"(?:^F\d{4}|: F) .*?[\w/.]+:\d+\] ")
"""Begins a line with which native code ends its process."""

_VALUE = re.compile(r"Couldn't interpret value .* for flag \w+")
"""What XLA writes before it ends the process because of a flag's value."""

_LONGEST = 200
"""Characters of such a message."""


def fatal_message(log: str) -> str:
    """The last message of native code that ended its process, on a line; empty if it did not."""
    for line in reversed(log.splitlines()):
        if begin := FATAL.search(line):
            value = _VALUE.search(log) if "Flag parsing failed" in line else None
            return truncated(value[0] if value else line[begin.end() :].strip(), _LONGEST)
    return ""


def lines_of(log: str) -> list[str]:
    """The lines of a log, without empty ones and those that TensorFlow writes at every start."""
    return [line.strip() for line in log.splitlines() if line.strip() and not _AT_EVERY_START.match(line)]


class LogFile(io.RawIOBase):
    """Writes to an open log file; what a full disk does not take is counted, and ends nothing.

    Args:
        descriptor: The file, which stays open.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._lost = 0

    def writable(self) -> bool:
        """Whether it can be written."""
        return True

    def fileno(self) -> int:
        """The descriptor."""
        return self._descriptor

    def write(self, data: "io.ReadableBuffer", /) -> int:  # type: ignore[name-defined]
        """Write all of it, as far as the disk has room; returns its length in bytes."""
        text = bytes(data)
        missing = f"\n{OWN_PREFIX}{self._lost:,} bytes of output are missing here: the log could not be written\n"
        if text and self._lost and not self._put(missing.encode()):
            self._lost = 0
        self._lost += self._put(text)
        return len(text)

    def _put(self, data: bytes) -> int:
        """Write; returns the number of bytes that could not be written."""
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError:
            pass
        return len(data)


def never_fail_to_print() -> None:
    """Let this process print to its log line by line; what a full disk does not take ends nothing."""
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(
            io.BufferedWriter(LogFile(stream.fileno())),
            encoding=stream.encoding,
            errors=stream.errors,
            line_buffering=True,
        )
        for stream in (sys.stdout, sys.stderr)
    )


def note_in_log(directory: Path, message: str) -> None:
    """Add a message of this program to the log of a run; lost where the log cannot be written."""
    with suppress(OSError), open(open_log(directory / LOG), "a") as log:
        log.write(f"{OWN_PREFIX}{message}\n")
