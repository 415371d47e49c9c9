"""Dialog that asks for how many epochs to train a finished run in total."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from accel_engine.words import numbers
from accel_tui.plan.trained_run import TrainedRun, parse_epochs
from accel_tui.screens.entry_screen import EntryScreen


class TrainLongerScreen(EntryScreen[int]):
    """Asks for the epochs of a finished run in total.

    Args:
        run: The run.
    """

    FIELD = "epochs"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Cancel", id="train-longer.back", tooltip="Close without changes")
    ]

    def __init__(self, run: TrainedRun) -> None:
        of_plan = f" of {run.plan.epochs:,} planned" if run.trained < run.plan.epochs else ""
        trained = f"{numbers.counted(run.trained, 'epoch')}{of_plan}"
        super().__init__(
            "Train longer",
            f"Trained: {trained}. Epochs in total, or +N for N more:",
            str(max(run.trained + run.plan.epochs, run.minimum)),
        )
        self._run = run

    def parse(self, text: str) -> int:
        """Parse the epochs in total."""
        return parse_epochs(text, self._run)

    def effect(self, value: int) -> str:
        """Count the epochs."""
        return f"trains {value - self._run.trained:,} more, {numbers.counted(value, 'epoch')} in total"
