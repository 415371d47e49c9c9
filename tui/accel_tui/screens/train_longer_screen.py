"""Dialog that asks for how many epochs to train a finished run in total."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input, Label

from accel_engine.errors import UsageError
from accel_engine.run.listing import RunSummary
from accel_tui.formatting import numbers
from accel_tui.host import host_of
from accel_tui.plan.trained_run import TrainedRun, parse_epochs
from accel_tui.widgets.line_input import LineInput

HINT = "[@click=screen.train]enter trains $text[/], [@click=screen.dismiss(None)]esc cancels[/]"


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

    def action_train(self) -> None:
        """Return the number of epochs if it is valid."""
        self._train(self.query_one("#epochs", Input).value)

    @on(Input.Submitted, "#epochs")
    def _submit(self, event: Input.Submitted) -> None:
        self._train(event.value)  # keys that came with enter may have changed the field since

    def _train(self, text: str) -> None:
        try:
            self.dismiss(parse_epochs(text, self._run))
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
