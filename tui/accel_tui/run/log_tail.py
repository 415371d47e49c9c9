"""Reading the ends of text files as they grow."""

import os
import re
from pathlib import Path
from typing import BinaryIO, NamedTuple

from accel_engine.run.paths import LOG
from accel_engine.run.worker_runs import worker_runs_of
from accel_engine.text import printable_line

REACH = 256 * 1024
"""How far back from the end a file is read at first, in bytes."""

OTHERS_REACH = 16 * 1024
"""Likewise of another worker's log, so that the run's own is not lost among them."""

_SEQUENCES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x07")
"""What progress bars colour and move the cursor with, titles, links and bells: left out, as they say nothing."""


class LogLine(NamedTuple):
    """A line of a log."""

    text: str
    """Without its end, and printable."""

    at: int | None = None
    """The byte of the run's own log that it begins at; ``None`` for a line of another worker."""


class LogTail:
    """The lines that are added to a file; what is there already only as far back as ``reach``.

    Args:
        path: The file; it need not exist yet.
        reach: In bytes; :data:`REACH` when left out.
    """

    def __init__(self, path: Path, reach: int | None = None) -> None:
        self._path = path
        self._reach = reach or REACH
        self._offset: int | None = None
        self._rest = b""
        self._at = 0

    def read(self) -> list[LogLine]:
        """The whole lines that are new since the last call.

        Of a line that was overwritten with carriage returns, as progress bars are, only the last
        form is given. A file that has become shorter is read from its beginning.
        """
        try:
            with self._path.open("rb") as file:
                return self._new_lines(file)
        except OSError:
            return []

    def before(self, at: int) -> list[LogLine]:
        """The lines before the one that begins at a byte of the file, as far back as ``reach``."""
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
            skip = 1 if self._offset else 0  # the line that is cut by starting there
        elif end < self._offset:
            self._offset, self._rest, self._at = 0, b"", 0
        if end == self._offset:
            return []
        file.seek(self._offset)
        data = file.read(REACH)
        whole, _, rest = (self._rest + data).rpartition(b"\n")
        before = self._offset - len(self._rest)
        self._offset += len(data)
        lines = _lines(whole + b"\n", before) if data.count(b"\n") else []
        if lines:
            lines[0] = lines[0]._replace(at=self._at)  # of which the beginning may not have been kept
            self._at = self._offset - len(rest)
        # A bar that never ends its line must not pile up; the last byte may be half of a line's end.
        self._rest = rest[rest.rfind(b"\r", 0, -1) + 1 :][-REACH:]
        return lines[skip:]


class Logs:
    """The lines that are added to a run's log, and to those of its other workers, each after its worker's name.

    Args:
        directory: The run's.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._own = LogTail(directory / LOG)
        self._others: dict[str, LogTail] = {}

    def read(self) -> list[LogLine]:
        """The whole lines that are new since the last call, in the order in which they were found."""
        for worker, part in worker_runs_of(self._directory).items():
            if worker not in self._others:
                self._others[worker] = LogTail(part / LOG, OTHERS_REACH)
        lines = self._own.read()
        for worker, tail in self._others.items():
            lines += [LogLine(f"{worker} │ {line.text}") for line in tail.read()]
        return lines

    def before(self, at: int) -> list[LogLine]:
        """What the run's own log has before a line that begins at a byte of it; a part of that, if it is long."""
        return self._own.before(at)


def _lines(data: bytes, at: int) -> list[LogLine]:
    """The lines of whole lines.

    Args:
        data: Empty, or ends with the end of a line.
        at: Where it begins in its file.
    """
    lines = []
    for line in data.split(b"\n")[:-1]:
        lines.append(LogLine(_plain(line), at))
        at += len(line) + 1
    return lines


def _plain(line: bytes) -> str:
    text = line.rstrip(b"\r").rpartition(b"\r")[2].decode(errors="replace")
    return printable_line(_SEQUENCES.sub("", text))
