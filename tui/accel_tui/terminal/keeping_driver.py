"""Textual's way to a terminal, where a frame is shown already."""

from textual.drivers.linux_driver import LinuxDriver

from accel_tui.terminal.first_frame import ALTERNATE


class KeepingDriver(LinuxDriver):
    """Does not begin the alternate screen again, which some terminals would clear, until the shell has had it."""

    _is_begun = False

    def write(self, data: str) -> None:
        """Send it, but for that."""
        if data == ALTERNATE and not self._is_begun:
            self._is_begun = True
        else:
            super().write(data)
