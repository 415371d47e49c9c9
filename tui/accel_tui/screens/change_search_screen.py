"""Dialogs that change a running search: its ranges and number of trials, and the epochs of a trial."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Label

from accel_engine.errors import AccelError, PlanError
from accel_engine.search.definition import StudyDefinition
from accel_engine.search.over import format_over, format_values, parameter_of
from accel_engine.words import numbers
from accel_tui.formatting import field_labels
from accel_tui.formatting.field_labels import word
from accel_tui.plan.whole_number import parse_count
from accel_tui.screens.entry_screen import EntryScreen
from accel_tui.widgets.line_input import LineInput

Change = tuple[str, Any]
"""A command to the search, and its argument."""

TRIALS = "trials"
"""Id of the field with the number of trials."""

HINT = "[@click=screen.change]enter changes $text[/], [@click=screen.dismiss(None)]esc cancels[/]"


class ChangeSearchScreen(ModalScreen[Sequence[Change] | None]):
    """Asks for other ranges; returns the commands, or ``None`` when cancelled.

    Args:
        definition: The search.
    """

    CSS_PATH = "dialog.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Cancel", id="change-search.back", tooltip="Close without changes"),
        Binding("down", "app.focus_next", id="change-search.down", tooltip="Next field"),
        Binding("up", "app.focus_previous", id="change-search.up", tooltip="Previous field"),
    ]

    def __init__(self, definition: StudyDefinition) -> None:
        super().__init__()
        self._definition = definition

    def compose(self) -> ComposeResult:
        """Compose a field for the number of trials, one for each parameter, and a hint."""
        with Vertical(classes="dialog"):
            yield Label("Change the search", classes="question")
            yield Label("Trials to come are sampled from the new ranges; the others stay.", classes="detail")
            with VerticalScroll(can_focus=False, classes="fields"):
                yield Label("number of trials", classes="label")
                yield LineInput(str(self._definition.trials), id=TRIALS, compact=True)
                for parameter in self._definition.parameters:
                    yield Label(field_labels.label(parameter.name), classes="label", markup=False)
                    yield LineInput(format_values(parameter), id=f"range-{parameter.name}", compact=True)
            yield Label(id="verdict")

    def _changes(self) -> Iterator[Change]:
        """The commands for all fields that differ.

        Raises:
            AccelError: A field is invalid.
        """
        trials = parse_count(self.query_one(f"#{TRIALS}", Input).value, "trials")
        if trials != self._definition.trials:
            yield "set_trials", trials
        for parameter in self._definition.parameters:
            text = self.query_one(f"#range-{parameter.name}", Input).value
            changed = parameter_of(parameter.name, text.strip())
            if changed != parameter:
                yield "set_range", format_over(changed)

    @on(Input.Changed)
    def _validate(self) -> None:
        verdict = self.query_one("#verdict", Label)
        try:
            changes = list(self._changes())
        except AccelError as error:
            verdict.set_classes("wrong")
            verdict.update(Content(problem_text(error)))
        else:
            verdict.set_classes("")
            text = ", ".join(str(argument) for _, argument in changes) or "nothing"
            verdict.update(Content.from_markup(HINT, text=text))

    def action_change(self) -> None:
        """Return the commands if all fields are valid."""
        try:
            self.dismiss(tuple(self._changes()))
        except AccelError:
            self.app.bell()

    @on(Input.Submitted)
    def _submit(self) -> None:
        self.action_change()


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


def problem_text(error: AccelError) -> str:
    """What is wrong, with the label of the field as the form has it."""
    if isinstance(error, PlanError):
        return f"{field_labels.label(error.field)} {word(error.reason)}"
    return str(error)
