"""Dialog that asks how many runs the queue trains at once."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from accel_tui.formatting.queued_runs import parse_limit
from accel_tui.screens.entry_screen import EntryScreen

DETAIL = "auto: one per accelerator, or one on the CPU. Runs that train are not stopped."


class LimitScreen(EntryScreen[str]):
    """Asks for a limit; returns its text.

    Args:
        current: The current limit; ``None`` for the default.
    """

    FIELD = "limit"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Cancel", id="limit.back", tooltip="Close without changes")
    ]

    def __init__(self, current: int | None) -> None:
        super().__init__("Most runs at once", DETAIL, str(current or "auto"))

    def parse(self, text: str) -> str:
        """Check a limit."""
        parse_limit(text)
        return text
