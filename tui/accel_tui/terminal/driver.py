"""Textual's way to a terminal, which may be gone, or show a frame already."""

import contextlib
from typing import IO, Any

from textual.drivers.linux_driver import LinuxDriver

from accel_tui.terminal.saved_frame import ALTERNATE


class BestEffortWriter:
    """A terminal to write to, whether it is there or not: nobody who is waited for shall wait for it.

    Args:
        terminal: What is written to.
    """

    def __init__(self, terminal: IO[str]) -> None:
        self._terminal = terminal

    def write(self, text: str) -> None:
        """Write."""
        with contextlib.suppress(OSError):
            self._terminal.write(text)

    def flush(self) -> None:
        """Send what was written."""
        with contextlib.suppress(OSError):
            self._terminal.flush()

    def fileno(self) -> int:
        """The terminal's."""
        return self._terminal.fileno()


class DisconnectSafeDriver(LinuxDriver):
    """Does not wait for a terminal that is gone."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._file: Any = BestEffortWriter(self._file)

    def _sigcont_application(self, *args: Any) -> None:
        # The signal comes with every hang-up, too; Textual would begin anew with a thread that nobody ends.
        if self._must_signal_resume:
            super()._sigcont_application(*args)


class SavedFrameDriver(DisconnectSafeDriver):
    """Does not begin the alternate screen again, which some terminals would clear, until the shell has had it."""

    _is_begun = False

    def write(self, data: str) -> None:
        """Send it, but for that."""
        if data == ALTERNATE and not self._is_begun:
            self._is_begun = True
        else:
            super().write(data)
