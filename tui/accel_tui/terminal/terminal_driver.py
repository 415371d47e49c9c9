"""A terminal driver that survives a disconnected terminal."""

import contextlib
from typing import IO, Any

from textual.drivers.linux_driver import LinuxDriver


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


class DisconnectSafeDriver(LinuxDriver):
    """Linux driver that does not block or fail when the terminal is gone."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._file: Any = BestEffortWriter(self._file)

    def _sigcont_application(self, *args: Any) -> None:
        # SIGCONT also comes with a hang-up, on which Textual would start a thread that nobody stops.
        if self._must_signal_resume:
            super()._sigcont_application(*args)
