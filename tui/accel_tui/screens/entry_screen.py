"""Modal dialog that asks for one value in a field, and says at each key what enter would do."""

from typing import ClassVar, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Label

from accel_engine.errors import AccelError
from accel_tui.widgets.line_input import LineInput

HINT = "[@click=screen.enter]enter $text[/], [@click=screen.dismiss(None)]esc cancels[/]"

EFFECT = "sets it"
"""What enter does, unless the value tells more."""

Value = TypeVar("Value")


class EntryScreen(ModalScreen[Value | None], Generic[Value]):
    """Asks for a value; returns ``None`` when cancelled. Subclasses parse it, and bind escape.

    Args:
        question: A few words.
        detail: What the value means.
        text: The text of the field at first.
        placeholder: Examples in an empty field, which then is no mistake.
    """

    CSS_PATH = "dialog.tcss"
    FIELD: ClassVar[str]
    """The field's id."""

    def __init__(self, question: str, detail: str, text: str = "", placeholder: str = "") -> None:
        super().__init__()
        self._question, self._detail = question, detail
        self._text, self._placeholder = text, placeholder

    def parse(self, text: str) -> Value:
        """Parse the text of the field.

        Raises:
            AccelError: It is no value.
        """
        raise NotImplementedError

    def effect(self, value: Value) -> str:  # noqa: ARG002 (subclasses name it)
        """What enter does with a value, in a few words."""
        return EFFECT

    def compose(self) -> ComposeResult:
        """Compose the question, the field, and what enter does."""
        with Vertical(classes="dialog"):
            yield Label(self._question, classes="question")
            yield Label(self._detail, classes="detail")
            yield LineInput(self._text, placeholder=self._placeholder, id=self.FIELD, compact=True)
            yield Label(id="verdict")

    def on_mount(self) -> None:
        """Say what enter does at first."""
        self._judge(self._text)

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        self._judge(event.value)

    def _judge(self, text: str) -> None:
        verdict = self.query_one("#verdict", Label)
        try:
            is_untouched = self._placeholder and not text.strip()
            effect = EFFECT if is_untouched else self.effect(self.parse(text))
        except AccelError as error:
            verdict.set_classes("wrong")
            verdict.update(Content(str(error)))
        else:
            verdict.set_classes("")
            verdict.update(Content.from_markup(HINT, text=effect))

    def action_enter(self) -> None:
        """Return the value if it is valid."""
        self._return(self.query_one(Input).value)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        self._return(event.value)  # keys that came with enter may have changed the field since

    def _return(self, text: str) -> None:
        try:
            self.dismiss(self.parse(text))
        except AccelError:
            self.app.bell()
