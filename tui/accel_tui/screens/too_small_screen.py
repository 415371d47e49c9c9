"""Screen that covers the app while the terminal is too small."""

from textual.app import ComposeResult
from textual.events import Resize
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.widgets import Static

SMALLEST = Size(60, 16)
"""Minimum terminal size in columns and rows."""


def is_too_small(size: Size) -> bool:
    """Whether a terminal is smaller than :data:`SMALLEST` in either direction."""
    return size.width < SMALLEST.width or size.height < SMALLEST.height


class TooSmallScreen(ModalScreen[None]):
    """Shows the required terminal size; the app removes it once the terminal is large enough."""

    DEFAULT_CSS = """
    TooSmallScreen { align: center middle; background: $background; }
    TooSmallScreen Static { width: auto; max-width: 100%; height: auto; text-align: center; }
    """

    def compose(self) -> ComposeResult:
        """Compose a centred text."""
        yield Static(markup=False)

    def on_resize(self, event: Resize) -> None:
        """Show the current and the required size."""
        self.query_one(Static).update(
            f"The terminal is {event.size.width}x{event.size.height}.\n"
            f"accel-tui needs at least {SMALLEST.width}x{SMALLEST.height} (80x24 recommended)."
        )
