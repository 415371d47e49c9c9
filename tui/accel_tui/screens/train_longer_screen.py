"""Dialog that asks for how many epochs to train a finished run in total."""

import math
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input, Label

from accel_engine.errors import PlanError, UsageError
from accel_engine.plan import Plan
from accel_engine.run import RunInfo
from accel_engine.run.listing import RunSummary
from accel_engine.run.plan_changes import check_epochs
from accel_tui.formatting import numbers
from accel_tui.host import host_of
from accel_tui.widgets.line_input import LineInput

HINT = "[@click=screen.train]enter trains $text[/], [@click=screen.dismiss(None)]esc cancels[/]"


@dataclass(frozen=True, slots=True)
class TrainedRun:
    """A finished run, and how far it was trained.

    Attributes:
        info: The run.
        plan: Its plan.
        epochs: Epochs trained at its last checkpoint, as a fraction.
    """

    info: RunInfo
    plan: Plan
    epochs: float

    @property
    def trained(self) -> int:
        """Whole epochs trained, the last one included if it was not completed."""
        return math.ceil(self.epochs)

    @property
    def minimum(self) -> int:
        """The fewest epochs in total with which the run can continue."""
        return next(
            (epochs for epochs in (self.trained + 1, self.plan.epochs + 1) if self._allows(epochs)),
            max(self.trained, self.plan.epochs) + 1,
        )

    def _allows(self, epochs: int) -> bool:
        try:
            check_epochs(self.info, self.plan.replace(epochs=epochs), float(self.trained))
        except PlanError:
            return False
        return True


def parse_epochs(text: str, run: TrainedRun) -> int:
    """Parse a number of epochs; returns the epochs in total.

    Args:
        text: A total, such as ``20``, or an addition, such as ``+10``.
        run: The run.

    Raises:
        UsageError: It is no whole number, or no more than the run was trained.
    """
    text = text.replace(",", "").replace(" ", "")
    try:
        total = int(text) + (run.trained if text.startswith("+") else 0)
    except ValueError:
        raise UsageError("must be a number of epochs, e.g. 20 in total, or +10 for 10 more") from None
    if total < run.minimum:
        raise UsageError(f"must be at least {run.minimum} in total, e.g. +{run.minimum - run.trained}")
    return total


class TrainLongerScreen(ModalScreen[int | None]):
    """Asks for the epochs of a finished run in total; returns ``None`` when cancelled.

    Args:
        run: The run.
    """

    CSS_PATH = "dialog.tcss"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Cancel", id="train-longer.back", tooltip="Close without changes")
    ]

    def __init__(self, run: TrainedRun) -> None:
        super().__init__()
        self._run = run

    def compose(self) -> ComposeResult:
        """Compose how far the run was trained, a field, and a hint."""
        run = self._run
        of_plan = f" of {run.plan.epochs:,} planned" if run.trained < run.plan.epochs else ""
        trained = f"{numbers.counted(run.trained, 'epoch')}{of_plan}"
        with Vertical(classes="dialog"):
            yield Label("Train longer", classes="question")
            yield Label(f"Trained: {trained}. Epochs in total, or +N for N more:", classes="detail")
            yield LineInput(str(max(run.trained + run.plan.epochs, run.minimum)), id="epochs", compact=True)
            yield Label(id="verdict")

    @on(Input.Changed, "#epochs")
    def _validate(self, event: Input.Changed) -> None:
        verdict = self.query_one("#verdict", Label)
        try:
            total = parse_epochs(event.value, self._run)
        except UsageError as error:
            verdict.set_classes("wrong")
            verdict.update(Content(str(error)))
        else:
            verdict.set_classes("")
            text = f"{total - self._run.trained:,} more, {numbers.counted(total, 'epoch')} in total"
            verdict.update(Content.from_markup(HINT, text=text))

    @on(Input.Submitted, "#epochs")
    def action_train(self) -> None:
        """Return the number of epochs if it is valid."""
        try:
            self.dismiss(parse_epochs(self.query_one("#epochs", Input).value, self._run))
        except UsageError:
            self.app.bell()


def ask_to_train_longer(node: Widget, run: RunSummary) -> None:
    """Ask for the number of epochs, then continue the run from its last checkpoint."""
    if run.info is None or run.info.plan is None:
        return

    def train(epochs: int | None) -> None:
        if epochs is not None:
            host_of(node).launcher.continue_run(run.directory, epochs)

    node.app.push_screen(TrainLongerScreen(TrainedRun(run.info, run.info.plan, run.epochs)), train)
