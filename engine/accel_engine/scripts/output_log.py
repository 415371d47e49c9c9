"""Writes a script's output to the log of its run."""

import os
from pathlib import Path


class OutputLog:
    """Appends output to a log file; what a full disk does not take is counted, and never ends the script.

    Args:
        path: The log file.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._held = b""
        self._lost = 0

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
        self._append(data)

    def note(self, text: str) -> None:
        """Append a line of accel-tui's own."""
        self._append(f"accel-tui: {text}\n".encode())

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _append(self, data: bytes) -> None:
        if self._lost and data:
            lost, self._lost = self._lost, 0
            self._append(
                f"\naccel-tui: {lost:,} bytes of output are missing here: the log could not be written\n".encode()
            )
            if self._lost:  # still not
                self._lost = lost
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError:
            self._lost += len(data)
