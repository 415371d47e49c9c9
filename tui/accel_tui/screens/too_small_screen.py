"""What is shown while the terminal is too small for anything else."""

from textual.app import ComposeResult
from textual.events import Resize
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.widgets import Static

SMALLEST = Size(60, 16)
"""The smallest terminal, in columns and rows, in which the program can be used."""


def too_small(size: Size) -> bool:
    """Whether a terminal is smaller than :data:`SMALLEST` in any direction."""
    return size.width < SMALLEST.width or size.height < SMALLEST.height


class TooSmallScreen(ModalScreen[None]):
    """Says how large the terminal must be; the app takes it away as soon as it is."""

    DEFAULT_CSS = """
    TooSmallScreen { align: center middle; background: $background; }
    TooSmallScreen Static { width: auto; max-width: 100%; height: auto; text-align: center; }
    """

    def compose(self) -> ComposeResult:
        """One text, in the middle."""
        yield Static(markup=False)

    def on_resize(self, event: Resize) -> None:
        """Say what is, and what is needed."""
        self.query_one(Static).update(
            f"This terminal is {event.size.width}x{event.size.height}.\n"
            f"accel-tui needs at least {SMALLEST.width}x{SMALLEST.height}; 80x24 is comfortable."
        )
