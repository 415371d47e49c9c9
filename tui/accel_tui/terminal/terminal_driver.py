"""Terminal drivers: survive a disconnected terminal, and keep a frame that is already shown."""

import contextlib
from typing import IO, Any

from textual.drivers.linux_driver import LinuxDriver

from accel_tui.terminal.saved_frame import ENTER_ALTERNATE_SCREEN


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


class SavedFrameDriver(DisconnectSafeDriver):
    """Linux driver that keeps a saved frame on screen: skips the first switch to the alternate screen."""

    _is_started = False

    def write(self, data: str) -> None:
        """Write data, except for the first switch to the alternate screen."""
        if data == ENTER_ALTERNATE_SCREEN and not self._is_started:
            self._is_started = True
        else:
            super().write(data)
