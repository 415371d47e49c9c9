"""Textual's way to a terminal, where a frame is shown already."""

from textual.drivers.linux_driver import LinuxDriver

from accel_tui.terminal.first_frame import ALTERNATE


class KeepingDriver(LinuxDriver):
    """Does not begin the alternate screen again: some terminals would clear it."""

    def write(self, data: str) -> None:
        """Send it, but for that."""
        if data != ALTERNATE:
            super().write(data)
