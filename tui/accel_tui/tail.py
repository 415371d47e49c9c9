"""Reading the end of a text file as it grows."""

import os
import re
from pathlib import Path
from typing import BinaryIO

REACH = 256 * 1024
"""How far back from the end a file is read at first, in bytes."""

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1f\x7f]")
"""Escape sequences and control characters, which would be obeyed by the terminal."""


class Tail:
    """The lines that are added to a file; what is there already only as far back as :data:`REACH`.

    Args:
        path: The file; it need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
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
            self._offset = max(0, end - REACH)
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


def _plain(line: bytes) -> str:
    text = line.rstrip(b"\r").rpartition(b"\r")[2].decode(errors="replace")
    return _CONTROL.sub("", text.expandtabs())
