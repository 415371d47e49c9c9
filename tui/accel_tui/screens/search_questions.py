"""What is asked before a search is changed."""

from collections.abc import Mapping

from accel_engine.errors import UsageError
from accel_engine.words import numbers
from accel_tui.screens.entry_screen import Entry, EntryScreen

MAX_COUNT = 100_000
"""The largest number of trials or epochs."""


class TrialsScreen(EntryScreen[int]):
    """Asks for another number of trials.

    Args:
        trials: The number now.
    """

    def __init__(self, trials: int) -> None:
        super().__init__("Change the number of trials", "Number of trials:", Entry("trials", str(trials)))

    def parse(self, texts: Mapping[str, str]) -> int:
        """Parse a number of trials."""
        return parse_count(texts["trials"], "trials")

    def effect(self, value: int) -> str:
        """Count the trials."""
        return f"searches with {numbers.counted(value, 'trial')}"


class ProlongScreen(EntryScreen[int]):
    """Asks for a number of epochs.

    Args:
        trial: Number of the trial.
    """

    def __init__(self, trial: int) -> None:
        detail = "It continues from its last checkpoint. Number of epochs more:"
        super().__init__(f"Prolong trial {trial}", detail, Entry("epochs", "5"))

    def parse(self, texts: Mapping[str, str]) -> int:
        """Parse a number of epochs."""
        return parse_count(texts["epochs"], "epochs")

    def effect(self, value: int) -> str:
        """Count the epochs."""
        return f"trains {numbers.counted(value, 'epoch')} more"


def parse_count(text: str, noun: str) -> int:
    """Parse a number from 1.

    Args:
        text: The text; commas and blanks between digits are ignored.
        noun: What is counted, in the plural.

    Raises:
        UsageError: It is none.
    """
    try:
        count = int(text.strip().removeprefix("+").replace(",", "").replace(" ", ""))
    except ValueError:
        count = 0
    if not 1 <= count <= MAX_COUNT:
        raise UsageError(f"must be a number of {noun}, from 1 to {MAX_COUNT:,}")
    return count
