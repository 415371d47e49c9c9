"""Writes a script's output to the log of its run."""

import os
from pathlib import Path

from accel_engine.files import open_log
from accel_engine.run.directory.log_file import LogFile, follow_run


class OutputLog:
    """Appends output to a log file; what a full disk does not take is counted, and never ends the script.

    Args:
        path: The log file.
    """

    def __init__(self, path: Path) -> None:
        self._file = LogFile(open_log(path))
        self._held = b""

    def write(self, data: bytes, *, terminal: bool = False) -> None:
        """Append output.

        Args:
            data: The output.
            terminal: Whether it went through a terminal, which ends lines with a carriage return.
        """
        if terminal:
            data = self._held + data
            self._held = b"\r" if data.endswith(b"\r") else b""
            data = data.removesuffix(b"\r").replace(b"\r\n", b"\n")
        self._file.write(data)

    def note(self, text: str) -> None:
        """Append a line of accel-tui's own."""
        self._file.write(f"accel-tui: {text}\n".encode())

    def follow_run(self, former: Path, directory: Path) -> None:
        """Append to the log of another directory from now on, as this process does."""
        follow_run(former, directory, self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        os.close(self._file.fileno())
