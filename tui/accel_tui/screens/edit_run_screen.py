"""Asking what a run is to be called, noted of it and tagged with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Label

from accel_engine.errors import UsageError
from accel_engine.run import Annotations
from accel_engine.run.annotations import apply_tag_changes, validate_name, validate_note, validate_tags
from accel_tui.widgets.line_input import LineInput

HINT = "[@click=screen.keep]enter keeps all of it[/], [@click=screen.dismiss(None)]esc changes nothing[/]"

Change = Annotations | tuple[str, ...]
"""The labels of a run as they are to be, or changes of the tags of several, as in ``+paper -old``."""


@dataclass(frozen=True, slots=True)
class EditedField:
    """Whose labels are asked for.

    Attributes:
        ids: Of one run, or of several, of which only the tags are asked for.
        labels: Those of the one run.
        planned: The name that its plan gives it.
    """

    ids: Sequence[str]
    labels: Annotations
    planned: str


class EditRunScreen(ModalScreen[Change | None]):
    """Asks; returns ``None`` when it was left.

    Args:
        question: Whose labels.
    """

    CSS_PATH = "dialog.tcss"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Back", id="labels.back", tooltip="Change nothing"),
        Binding("down", "app.focus_next", show=False, id="labels.next", tooltip="Go to the next field"),
        Binding("up", "app.focus_previous", show=False, id="labels.previous", tooltip="Go to the field before"),
    ]

    def __init__(self, question: EditedField) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """A field for each label, and whether what is in them will do."""
        question, labels = self._question, self._question.labels
        with Vertical(classes="dialog"):
            if len(question.ids) > 1:
                yield Label(f"Tag {len(question.ids)} runs", classes="question", markup=False)
                yield Label(", ".join(question.ids), classes="detail", markup=False)
                yield Label("Tags to add and to take away", classes="label")
                yield LineInput(placeholder="+paper -old", id="tags", compact=True)
            else:
                yield Label(f"Label {question.ids[0]}", classes="question", markup=False)
                yield Label("Name", classes="label")
                yield LineInput(
                    labels.name, placeholder=question.planned or "the plan gives none", id="name", compact=True
                )
                yield Label("Note", classes="label")
                yield LineInput(labels.note, id="note", compact=True)
                yield Label("Tags", classes="label")
                yield LineInput(" ".join(labels.tags), placeholder="paper baseline", id="tags", compact=True)
            yield Label(HINT, id="verdict")

    def _change(self) -> Change:
        fields = {field.id: field.value for field in self.query(Input)}
        words = str(fields["tags"]).replace(",", " ").split()
        if len(self._question.ids) > 1:
            apply_tag_changes((), words)
            return tuple(words)
        return Annotations(validate_name(str(fields["name"])), validate_note(str(fields["note"])), validate_tags(words))

    @on(Input.Changed)
    def _judge(self) -> None:
        verdict = self.query_one("#verdict", Label)
        try:
            self._change()
        except UsageError as error:
            verdict.set_classes("wrong")
            verdict.update(Content(str(error)))
        else:
            verdict.set_classes("")
            verdict.update(HINT)

    @on(Input.Submitted)
    def action_keep(self) -> None:
        """Return what is in the fields, if it will do."""
        try:
            self.dismiss(self._change())
        except UsageError:
            self.app.bell()
