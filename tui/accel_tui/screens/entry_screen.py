"""Modal dialogs that ask for values: in fields, which say at each key what enter would do; or of options in a form."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Label

from accel_engine.errors import AccelError
from accel_tui.screens.asking import Dialog
from accel_tui.widgets.jobs.option_form import OptionForm
from accel_tui.widgets.line_input import LineInput
from accel_tui.widgets.plan.picker import Picker

HINT = "[@click=screen.enter]enter $text[/], [@click=screen.back]esc cancels[/]"

EFFECT = "sets it"
"""What enter does, unless the value tells more."""

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Entry:
    """A field of the dialog."""

    id: str
    """Its name."""
    text: str = ""
    """Its text at first."""
    label: str = ""
    """What it is, above it; empty if the dialog says so."""
    placeholder: str = ""
    """Examples while it is empty. A dialog whose only field is empty and has examples is not a mistake yet."""


class EntryScreen(Dialog[Value]):
    """Asks for values; returns ``None`` when cancelled. Subclasses parse them.

    Args:
        question: A few words.
        detail: What the values mean; may be empty.
        entries: The fields.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "app.focus_next", id="dialog.down", tooltip="Next field"),
        Binding("up", "app.focus_previous", id="dialog.up", tooltip="Previous field"),
    ]

    def __init__(self, question: str, detail: str, *entries: Entry) -> None:
        super().__init__()
        self._question, self._detail, self._entries = question, detail, entries

    def parse(self, texts: Mapping[str, str]) -> Value:
        """Parse the texts of the fields, by their ids.

        Raises:
            AccelError: The texts are not a valid value.
        """
        raise NotImplementedError

    def effect(self, value: Value) -> str:
        """The effect of enter with a value, in a few words."""
        return EFFECT

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Label(self._question, classes="question", markup=False)
            if self._detail:
                yield Label(self._detail, classes="detail", markup=False)
            with VerticalScroll(can_focus=False, classes="fields"):
                for entry in self._entries:
                    if entry.label:
                        yield Label(entry.label, classes="label", markup=False)
                    yield LineInput(entry.text, placeholder=entry.placeholder, id=entry.id, compact=True)
            yield Label(id="verdict")

    def on_mount(self) -> None:
        self._judge()

    @property
    def _texts(self) -> dict[str, str]:
        return {str(field.id): field.value for field in self.query(Input)}

    @on(Input.Changed)
    def _judge(self) -> None:
        verdict, texts = self.query_one("#verdict", Label), self._texts
        is_untouched = len(texts) == 1 and self._entries[0].placeholder and not "".join(texts.values()).strip()
        try:
            effect = EFFECT if is_untouched else self.effect(self.parse(texts))
        except AccelError as error:
            verdict.set_classes("wrong")
            verdict.update(Content(str(error)))
        else:
            verdict.set_classes("")
            verdict.update(Content.from_markup(HINT, text=effect))

    def action_enter(self) -> None:
        """Return the value if it is valid."""
        self._return(self._texts)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        # Keys that came with enter may have changed the field since.
        self._return(self._texts | {str(event.input.id): event.value})

    def _return(self, texts: Mapping[str, str]) -> None:
        try:
            self.dismiss(self.parse(texts))
        except AccelError:
            self.app.bell()


class OptionsScreen(Dialog[Any]):
    """Asks for options; returns them, ``None`` when cancelled.

    Args:
        question: A few words.
        form: The form.
        edited: A row whose text is edited at once, with its choices open.
    """

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "start", "Take", id="dialog.take", tooltip="Take these options; in a field, enter does"),
        Binding("down", "app.focus_next", id="dialog.down", tooltip="Next field"),
        Binding("up", "app.focus_previous", id="dialog.up", tooltip="Previous field"),
    ]

    def __init__(self, question: str, form: OptionForm, edited: Picker | None = None) -> None:
        super().__init__()
        self._question, self._form, self._edited = question, form, edited

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Label(self._question, classes="question", markup=False)
            yield self._form

    def on_mount(self) -> None:
        self._form.focus_first()
        if self._edited:
            self._edited.edit()
            entered = self._edited.input.Entered()
            self.call_after_refresh(self._edited.input.post_message, entered)  # its list is as wide as there is room

    def action_start(self) -> None:
        """Return the options if they are valid."""
        self._form.submit()

    @on(OptionForm.Submitted)
    def _submitted(self, event: OptionForm.Submitted) -> None:
        event.stop()
        self.dismiss(event.options)
