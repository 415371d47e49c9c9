"""Modal dialog that asks for options in a form."""

from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Label

from accel_tui.screens.asking import Dialog
from accel_tui.widgets.jobs.option_form import OptionForm


class OptionsScreen(Dialog[Any]):
    """Asks for options; returns them, ``None`` when cancelled.

    Args:
        question: A few words.
        form: The form.
    """

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "start", "Take", id="dialog.take", tooltip="Take these options; in a field, enter does"),
        Binding("down", "app.focus_next", id="dialog.down", tooltip="Next field"),
        Binding("up", "app.focus_previous", id="dialog.up", tooltip="Previous field"),
    ]

    def __init__(self, question: str, form: OptionForm) -> None:
        super().__init__()
        self._question, self._form = question, form

    def compose(self) -> ComposeResult:
        """Compose the question and the form."""
        with Vertical(classes="dialog"):
            yield Label(self._question, classes="question", markup=False)
            yield self._form

    def on_mount(self) -> None:
        """Focus the first option."""
        self._form.focus_first()

    def action_start(self) -> None:
        """Return the options if they are valid."""
        self._form.submit()

    @on(OptionForm.Submitted)
    def _submitted(self, event: OptionForm.Submitted) -> None:
        event.stop()
        self.dismiss(event.options)
