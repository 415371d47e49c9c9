"""Screen that covers the app while the terminal is too small."""

from textual.app import ComposeResult
from textual.events import Resize
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.widgets import Static

MIN_SIZE = Size(60, 16)
"""Minimum terminal size in columns and rows."""


def is_too_small(size: Size) -> bool:
    """Whether a terminal is smaller than :data:`MIN_SIZE` in either direction."""
    return size.width < MIN_SIZE.width or size.height < MIN_SIZE.height


class TooSmallScreen(ModalScreen[None]):
    """Shows the required terminal size, until the terminal is large enough."""

    DEFAULT_CSS = """
    /* In two columns, a scrollbar would come and go with each layout: beside it no text needs it. */
    TooSmallScreen { align: center middle; background: $background; overflow: hidden; }
    TooSmallScreen Static { width: auto; max-width: 100%; height: auto; text-align: center; }
    """

    def compose(self) -> ComposeResult:
        yield Static(markup=False)

    def on_screen_resume(self) -> None:
        """Close if the terminal became large enough while another screen, opened meanwhile, covered this one."""
        if not is_too_small(self.app.size):
            self.dismiss()

    def on_resize(self, event: Resize) -> None:
        self.query_one(Static).update(
            f"The terminal is {event.size.width}x{event.size.height}.\n"
            f"accel-tui needs at least {MIN_SIZE.width}x{MIN_SIZE.height} (80x24 recommended)."
        )
