"""Reading the ends of text files as they grow."""

import os
import re
from pathlib import Path
from typing import BinaryIO

from accel_engine.run.parts import parts_of

LOG = "log.txt"
"""The log in a run's directory."""

REACH = 256 * 1024
"""How far back from the end a file is read at first, in bytes."""

OTHERS_REACH = 16 * 1024
"""Likewise of another worker's log, so that the run's own is not lost among them."""

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1f\x7f]")
"""Escape sequences and control characters, which would be obeyed by the terminal."""


class Tail:
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

    def read(self) -> list[str]:
        """The whole lines that are new since the last call, without control characters.

        Of a line that was overwritten with carriage returns, as progress bars are, only the last
        form is given. A file that has become shorter is read from its beginning.
        """
        try:
            with self._path.open("rb") as file:
                return self._new_lines(file)
        except OSError:
            return []

    def _new_lines(self, file: BinaryIO) -> list[str]:
        end = file.seek(0, os.SEEK_END)
        skip = 0
        if self._offset is None:
            self._offset = max(0, end - self._reach)
            skip = 1 if self._offset else 0  # the line that is cut by starting there
        elif end < self._offset:
            self._offset, self._rest = 0, b""
        if end == self._offset:
            return []
        file.seek(self._offset)
        data = file.read(REACH)
        self._offset += len(data)
        *lines, rest = (self._rest + data).split(b"\n")
        # A bar that never ends its line must not pile up; the last byte may be half of a line's end.
        self._rest = rest[rest.rfind(b"\r", 0, -1) + 1 :][-REACH:]
        return [_plain(line) for line in lines[skip:]]


class Logs:
    """The lines that are added to a run's log, and to those of its other workers, each after its worker's name.

    Args:
        directory: The run's.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._own = Tail(directory / LOG)
        self._others: dict[str, Tail] = {}

    def read(self) -> list[str]:
        """The whole lines that are new since the last call, in the order in which they were found."""
        for worker, part in parts_of(self._directory).items():
            if worker not in self._others:
                self._others[worker] = Tail(part / LOG, OTHERS_REACH)
        lines = self._own.read()
        for worker, tail in self._others.items():
            lines += [f"{worker} │ {line}" for line in tail.read()]
        return lines


def _plain(line: bytes) -> str:
    text = line.rstrip(b"\r").rpartition(b"\r")[2].decode(errors="replace")
    return _CONTROL.sub("", text.expandtabs())
