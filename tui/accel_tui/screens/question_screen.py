"""Modal dialog that asks a question with a few answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.events import Resize
from textual.widgets import Button, Label

from accel_engine.text import printable
from accel_engine.words import numbers
from accel_tui.screens.asking import Dialog
from accel_tui.terminal.textual_private import bind


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer and its button.

    Attributes:
        id: The dialog's result.
        label: The button's label.
        key: The key that selects it.
        is_destructive: Whether it cannot be undone.
    """

    id: str
    label: str
    key: str
    is_destructive: bool = False


CANCEL = Answer("cancel", "Cancel", "escape")
"""Leaves everything as it is."""


OVERWRITE = Answer("overwrite", "Overwrite", "o", is_destructive=True)


class Answers(Horizontal):
    """The buttons of a dialog, in a row if there is room for all of them, else one below the other."""

    def on_resize(self, event: Resize) -> None:
        """Lay the buttons out in the room that there is."""
        width = sum(button.outer_size.width + button.styles.margin.width for button in self.children)
        self.set_class(width > event.size.width, "-stacked")


class QuestionScreen(Dialog[str]):
    """Asks a question; returns the id of the answer, ``None`` when cancelled.

    Args:
        question: A few words.
        detail: What each answer means.
        answers: The answers; the first one has the focus. The one of escape is shown last.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,up", "app.focus_previous", id="question.previous", tooltip="Previous answer"),
        Binding("right,down", "app.focus_next", id="question.next", tooltip="Next answer"),
    ]

    def __init__(self, question: str, detail: str, answers: Sequence[Answer]) -> None:
        super().__init__()
        self._question = question
        self._detail = detail
        self._answers = tuple(answers)
        for answer in answers:
            bind(self, Binding(answer.key, f"answer({answer.id!r})", answer.label, show=False))

    def compose(self) -> ComposeResult:
        """Compose the question, its detail and a button per answer."""
        with Vertical(classes="dialog"):
            yield Label(self._question, classes="question", markup=False)
            yield Label(self._detail, classes="detail", markup=False)
            with Answers():
                for answer in sorted(self._answers, key=lambda answer: answer.key == "escape"):
                    key = self.app.get_key_display(Binding(answer.key, ""))
                    label = Content.assemble(answer.label, (f" {key}", "dim"))
                    yield Button(
                        label, id=answer.id, variant="error" if answer.is_destructive else "default", compact=True
                    )

    def on_mount(self) -> None:
        """Focus the first answer."""
        self.query_one(f"#{self._answers[0].id}").focus()

    def action_answer(self, answer: str) -> None:
        """Return an answer."""
        self.dismiss(answer)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id)


def overwrite_question(there: Sequence[Path], more: str = "") -> QuestionScreen:
    """Ask whether to overwrite what is there already.

    Args:
        there: Files and folders of one folder.
        more: A further sentence.
    """
    names = printable(", ".join(path.name for path in there))
    detail = " ".join((f"In {printable(str(there[0].absolute().parent))}: {names}.", more)).rstrip()
    return QuestionScreen(f"Overwrite {numbers.counted(len(there), 'file')}?", detail, (CANCEL, OVERWRITE))
