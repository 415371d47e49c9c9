"""Follows the ends of growing log files."""

import os
import re
from pathlib import Path
from typing import BinaryIO, NamedTuple

from accel_engine.run.directory.run_paths import LOG
from accel_engine.run.runs.worker_runs import worker_runs_of
from accel_engine.text import printable_line

MAX_BYTES = 256 * 1024
"""Bytes before the end that are read at first, and the most that one call reads."""

MAX_WORKER_BYTES = 16 * 1024
"""Bytes before the end of other workers' logs that are read at first: their lines must not outnumber the run's own."""

_SEQUENCES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x07")
"""Escape sequences of progress bars, titles and links, which are removed."""


class LogLine(NamedTuple):
    """A line of a log."""

    text: str
    """The text, printable, without its line ending."""

    at: int | None = None
    """Byte offset in the run's own log; ``None`` for a line that is not from there."""

    is_epoch: bool = False
    """Whether it has the values of an epoch."""


class LogTail:
    """Reads the lines appended to a file, and at first its last ``reach`` bytes.

    Args:
        path: The file; it need not exist yet.
        reach: Bytes; :data:`MAX_BYTES` if omitted.
    """

    def __init__(self, path: Path, reach: int | None = None) -> None:
        self._path = path
        self._reach = reach or MAX_BYTES
        self._offset: int | None = None
        self._rest = b""
        self._at = 0

    def read(self) -> list[LogLine]:
        """The complete lines since the last call, at most :data:`MAX_BYTES`; none if the file cannot be read.

        Of a line overwritten with carriage returns, as by progress bars, only the last form. A file that has become
        shorter is read from its beginning.
        """
        try:
            with self._path.open("rb") as file:
                return self._new_lines(file)
        except OSError:
            return []

    def read_before(self, at: int) -> list[LogLine]:
        """The lines before a byte offset, at most ``reach`` bytes."""
        start = max(0, at - self._reach)
        try:
            with self._path.open("rb") as file:
                file.seek(start)
                data = file.read(at - start)
        except OSError:
            return []
        return _lines(data, start)[1 if start else 0 :]

    def _new_lines(self, file: BinaryIO) -> list[LogLine]:
        end = file.seek(0, os.SEEK_END)
        skip = 0
        if self._offset is None:
            self._offset = self._at = max(0, end - self._reach)
            skip = 1 if self._offset else 0  # the partial first line
        elif end < self._offset:
            self._offset, self._rest, self._at = 0, b"", 0
        if end == self._offset:
            return []
        file.seek(self._offset)
        data = file.read(MAX_BYTES)
        complete, _, rest = (self._rest + data).rpartition(b"\n")
        before = self._offset - len(self._rest)
        self._offset += len(data)
        lines = _lines(complete + b"\n", before) if data.count(b"\n") else []
        if lines:
            lines[0] = LogLine(lines[0].text, self._at)  # its beginning may not have been kept
            self._at = self._offset - len(rest)
        # A progress bar that never ends its line must not accumulate; the last byte may be half of a line ending.
        self._rest = rest[rest.rfind(b"\r", 0, -1) + 1 :][-MAX_BYTES:]
        return lines[skip:]


class Logs:
    """Reads the lines appended to a run's log, and to its workers' logs, whose lines begin with the worker's name.

    Args:
        directory: The run's directory.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._own = LogTail(directory / LOG)
        self._others: dict[str, LogTail] = {}

    def read(self) -> list[LogLine]:
        """The next complete lines of all logs, the run's own first; see :meth:`LogTail.read`."""
        for worker, part in worker_runs_of(self._directory).items():
            if worker not in self._others:
                self._others[worker] = LogTail(part / LOG, MAX_WORKER_BYTES)
        lines = self._own.read()
        for worker, tail in self._others.items():
            lines += [LogLine(f"{worker} │ {line.text}") for line in tail.read()]
        return lines

    def read_before(self, at: int) -> list[LogLine]:
        """The lines of the run's own log before a byte offset, at most :data:`MAX_BYTES`."""
        return self._own.read_before(at)


def _lines(data: bytes, at: int) -> list[LogLine]:
    """Split complete lines.

    Args:
        data: Empty, or ends with a line ending.
        at: Its byte offset in the file.
    """
    lines = []
    for line in data.split(b"\n")[:-1]:
        lines.append(LogLine(_plain(line), at))
        at += len(line) + 1
    return lines


def _plain(line: bytes) -> str:
    text = line.rstrip(b"\r").rpartition(b"\r")[2].decode(errors="replace")
    return printable_line(_SEQUENCES.sub("", text))
