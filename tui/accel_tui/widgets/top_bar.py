"""The line at the top of a screen: program, screen, machine."""

import socket

from textual.content import Content
from textual.widget import Widget

from accel_engine.text import printable_line
from accel_engine.version import __version__


class TopBar(Widget):
    """A header of one line.

    Args:
        place: The screen's title.
    """

    DEFAULT_CSS = """
    TopBar {
        dock: top;
        height: 1;
        padding: 0 1;
        background: $surface;
    }
    """

    def __init__(self, place: str) -> None:
        super().__init__()
        self._place = place

    def render(self) -> Content:
        """Program and title on the left, host and version on the right."""
        left = Content.assemble(("accel-tui", "bold $accent"), ("  " + self._place, "bold"))
        right = Content.assemble(
            (printable_line(socket.gethostname()), "$text-muted"), ("  " + __version__, "$text-disabled")
        )
        gap = self.size.width - left.cell_length - right.cell_length
        return Content.assemble(left, " " * gap, right) if gap > 1 else left
