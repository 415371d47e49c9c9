"""Writes to a terminal that may be disconnected."""

import contextlib
from typing import IO


class BestEffortWriter:
    """A writer that ignores errors of a disconnected terminal.

    Args:
        terminal: The file to write to.
    """

    def __init__(self, terminal: IO[str]) -> None:
        self._terminal = terminal

    def write(self, text: str) -> None:
        """Write text; ignores a disconnected terminal."""
        with contextlib.suppress(OSError):
            self._terminal.write(text)

    def flush(self) -> None:
        """Flush; ignores a disconnected terminal."""
        with contextlib.suppress(OSError):
            self._terminal.flush()

    def fileno(self) -> int:
        """File descriptor of the terminal."""
        return self._terminal.fileno()
