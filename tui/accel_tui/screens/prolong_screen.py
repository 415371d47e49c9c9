"""Dialog that asks for how many more epochs to train a trial."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from accel_tui.formatting import numbers
from accel_tui.plan.whole_number import parse_count
from accel_tui.screens.entry_screen import EntryScreen


class ProlongScreen(EntryScreen[int]):
    """Asks for a number of epochs.

    Args:
        trial: Number of the trial.
    """

    FIELD = "epochs"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Cancel", id="prolong.back", tooltip="Close without changes")
    ]

    def __init__(self, trial: int) -> None:
        detail = "It continues from its last checkpoint. Number of epochs more:"
        super().__init__(f"Prolong trial {trial}", detail, "5")

    def parse(self, text: str) -> int:
        """Parse a number of epochs."""
        return parse_count(text, "epochs")

    def effect(self, value: int) -> str:
        """Count the epochs."""
        return f"trains {numbers.counted(value, 'epoch')} more"
