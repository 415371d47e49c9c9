"""Dialog that asks for how many more epochs to train a trial."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Label

from accel_engine.errors import UsageError
from accel_tui.formatting import numbers
from accel_tui.plan.whole_number import parse_count
from accel_tui.widgets.line_input import LineInput

HINT = "[@click=screen.train]enter trains $text more[/], [@click=screen.dismiss(None)]esc cancels[/]"


class ProlongScreen(ModalScreen[int | None]):
    """Asks for a number of epochs; returns ``None`` when cancelled.

    Args:
        trial: Number of the trial.
    """

    CSS_PATH = "dialog.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Cancel", id="prolong.back", tooltip="Close without changes")
    ]

    def __init__(self, trial: int) -> None:
        super().__init__()
        self._trial = trial

    def compose(self) -> ComposeResult:
        """Compose a field and a hint."""
        with Vertical(classes="dialog"):
            yield Label(f"Prolong trial {self._trial}", classes="question")
            yield Label("It continues from its last checkpoint. Number of epochs more:", classes="detail")
            yield LineInput("5", id="epochs", compact=True)
            yield Label(id="verdict")

    @on(Input.Changed, "#epochs")
    def _validate(self, event: Input.Changed) -> None:
        verdict = self.query_one("#verdict", Label)
        try:
            epochs = parse_count(event.value, "epochs")
        except UsageError as error:
            verdict.set_classes("wrong")
            verdict.update(Content(str(error)))
        else:
            verdict.set_classes("")
            verdict.update(Content.from_markup(HINT, text=numbers.counted(epochs, "epoch")))

    def action_train(self) -> None:
        """Return the number of epochs if it is valid."""
        self._train(self.query_one("#epochs", Input).value)

    @on(Input.Submitted, "#epochs")
    def _submit(self, event: Input.Submitted) -> None:
        self._train(event.value)  # keys that came with enter may have changed the field since

    def _train(self, text: str) -> None:
        try:
            self.dismiss(parse_count(text, "epochs"))
        except UsageError:
            self.app.bell()
