"""A question with a few answers, over whatever is on screen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Label


@dataclass(frozen=True, slots=True)
class Answer:
    """One thing that can be answered.

    Attributes:
        id: What the dialog returns.
        label: What it says on the button.
        key: The key that chooses it.
        grave: Whether it cannot be undone.
    """

    id: str
    label: str
    key: str
    grave: bool = False


class QuestionScreen(ModalScreen[str | None]):
    """Asks, and returns the id of the answer; ``None`` when it was left with escape.

    Args:
        question: In a few words.
        detail: What each answer means.
        answers: The first one has the focus.
    """

    CSS_PATH = "dialog.tcss"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Back", id="ask.back", tooltip="Change nothing"),
        Binding("left,up", "app.focus_previous", show=False, id="ask.previous", tooltip="The answer before"),
        Binding("right,down", "app.focus_next", show=False, id="ask.next", tooltip="The next answer"),
    ]

    def __init__(self, question: str, detail: str, answers: Sequence[Answer]) -> None:
        super().__init__()
        self._question = question
        self._detail = detail
        self._answers = tuple(answers)
        for answer in answers:
            self._bindings.bind(answer.key, f"answer({answer.id!r})", answer.label, show=False)

    def compose(self) -> ComposeResult:
        """The question, what the answers mean, and a button for each."""
        with Vertical(classes="dialog"):
            yield Label(self._question, classes="question", markup=False)
            yield Label(self._detail, classes="detail", markup=False)
            with Horizontal(classes="answers"):
                for answer in self._answers:
                    key = self.app.get_key_display(Binding(answer.key, ""))
                    label = Content.assemble(answer.label, (f" {key}", "dim"))
                    yield Button(label, id=answer.id, variant="error" if answer.grave else "default", compact=True)

    def action_answer(self, answer: str) -> None:
        """Give this answer."""
        self.dismiss(answer)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id)
