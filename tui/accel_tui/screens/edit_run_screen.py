"""Dialog that edits a run's name, note and tags."""

from collections.abc import Mapping, Sequence
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
from accel_engine.run.store.annotations import apply_tag_changes, validate_name, validate_note, validate_tags
from accel_tui.widgets.line_input import LineInput

HINT = "[@click=screen.save]enter saves[/], [@click=screen.dismiss(None)]esc cancels[/]"

Change = Annotations | tuple[str, ...]
"""New annotations of one run, or tag changes for several, e.g. ``+paper -old``."""


@dataclass(frozen=True, slots=True)
class RunsToEdit:
    """The runs whose annotations are edited.

    Attributes:
        ids: Run ids; of several runs only the tags can be edited.
        labels: Current annotations, of a single run.
        planned: The name in the run's plan.
    """

    ids: Sequence[str]
    labels: Annotations
    planned: str


class EditRunScreen(ModalScreen[Change | None]):
    """Edits annotations; returns ``None`` when cancelled.

    Args:
        question: The runs to edit.
    """

    CSS_PATH = "dialog.tcss"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Cancel", id="edit-run.back", tooltip="Close without changes"),
        Binding("down", "app.focus_next", id="edit-run.next", tooltip="Next field"),
        Binding("up", "app.focus_previous", id="edit-run.previous", tooltip="Previous field"),
    ]

    def __init__(self, question: RunsToEdit) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """Compose a field per annotation and a line for errors."""
        question, labels = self._question, self._question.labels
        with Vertical(classes="dialog"):
            if len(question.ids) > 1:
                yield Label(f"Tag {len(question.ids)} runs", classes="question", markup=False)
                yield Label(", ".join(question.ids), classes="detail", markup=False)
                yield Label("Tags to add (+) or remove (-)", classes="label")
                yield LineInput(placeholder="+paper -old", id="tags", compact=True)
            else:
                yield Label(f"Edit {question.ids[0]}", classes="question", markup=False)
                yield Label("Name", classes="label")
                yield LineInput(labels.name, placeholder=question.planned or "optional", id="name", compact=True)
                yield Label("Note", classes="label")
                yield LineInput(labels.note, id="note", compact=True)
                yield Label("Tags", classes="label")
                yield LineInput(" ".join(labels.tags), placeholder="paper baseline", id="tags", compact=True)
            yield Label(HINT, id="verdict")

    def _fields(self) -> dict[str, str]:
        return {str(field.id): field.value for field in self.query(Input)}

    def _change(self, fields: Mapping[str, str]) -> Change:
        words = fields["tags"].replace(",", " ").split()
        if len(self._question.ids) > 1:
            apply_tag_changes((), words)
            return tuple(words)
        return Annotations(validate_name(fields["name"]), validate_note(fields["note"]), validate_tags(words))

    @on(Input.Changed)
    def _validate(self) -> None:
        verdict = self.query_one("#verdict", Label)
        try:
            self._change(self._fields())
        except UsageError as error:
            verdict.set_classes("wrong")
            verdict.update(Content(str(error)))
        else:
            verdict.set_classes("")
            verdict.update(HINT)

    def action_save(self) -> None:
        """Return the new annotations if they are valid."""
        self._save(self._fields())

    @on(Input.Submitted)
    def _submit(self, event: Input.Submitted) -> None:
        # Keys that came with enter may have changed the field since.
        self._save(self._fields() | {str(event.input.id): event.value})

    def _save(self, fields: Mapping[str, str]) -> None:
        try:
            self.dismiss(self._change(fields))
        except UsageError:
            self.app.bell()
