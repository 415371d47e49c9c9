"""Base of screens: escape goes back, actions await dialogs, and work that would end is asked about first."""

import asyncio
import os
import types
from collections.abc import Callable, Coroutine, Generator, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.dom import DOMNode
from textual.events import Resize
from textual.screen import ModalScreen, Screen
from textual.widgets import Button, Label

from accel_engine.text import printable
from accel_engine.user_paths import absolute_path
from accel_engine.words import numbers
from accel_tui.app_protocol import Screens, errors_shown, open_screen
from accel_tui.terminal.textual_private import bind, is_being_removed

_Answer = TypeVar("_Answer")
_Node = TypeVar("_Node", bound=DOMNode)
_Arguments = ParamSpec("_Arguments")


async def ask_user(node: DOMNode, dialog: Screen[_Answer]) -> _Answer | None:
    """Open a dialog; returns its result once it is closed.

    Raises:
        CancelledError: The app or the screen is being closed, where a dialog would never be.
    """
    if not node.app.is_running or is_being_removed(node):
        raise asyncio.CancelledError
    closed: asyncio.Future[_Answer | None] = asyncio.get_running_loop().create_future()

    def close(answer: _Answer | None) -> None:
        if not closed.done():  # the action was not cancelled
            closed.set_result(answer)

    node.app.push_screen(dialog, close)
    return await closed


def copy_text(node: DOMNode, text: str, what: str = "Command") -> None:
    """Send a text to the clipboard, and say so; no terminal tells whether it has taken it."""
    node.app.copy_to_clipboard(text)
    by = "tmux and " if "TMUX" in os.environ else ""
    node.app.notify(f"{what} sent to {by}the terminal's clipboard", timeout=2)


def tell_question_first(node: DOMNode, title: str) -> None:
    """Say that what was started waits for a question, which would come over the screen that is open by now."""
    node.app.notify("There is a question first: start it again.", title=title, severity="warning")


def awaiting(
    action: Callable[Concatenate[_Node, _Arguments], Coroutine[Any, Any, None]],
) -> Callable[Concatenate[_Node, _Arguments], None]:
    """Make an action of a coroutine, whose rest is done in a worker.

    What comes before its first wait is done at once. In a worker it would begin after the key that is typed next, which
    would then be for the screen in place of the dialog.
    """

    @wraps(action)
    def begin(node: _Node, /, *arguments: _Arguments.args, **options: _Arguments.kwargs) -> None:
        coroutine = action(node, *arguments, **options)
        try:
            awaited = coroutine.send(None)
        except (StopIteration, asyncio.CancelledError):
            return

        async def rest() -> None:
            await _steps(coroutine, awaited)

        work: Callable[[], Any] = rest
        node.run_worker(work, exit_on_error=False, group="actions")

    return begin


@types.coroutine
def _steps(coroutine: Coroutine[Any, Any, None], awaited: object) -> Generator[object, None, None]:
    """The steps of a coroutine that has begun, from the first wait on."""
    while True:
        problem: BaseException | None = None
        try:
            yield awaited
        except BaseException as error:  # noqa: BLE001 (it is the coroutine's)
            problem = error
        try:
            awaited = coroutine.throw(problem) if problem else coroutine.send(None)
        except StopIteration:
            return


BACK = Binding(
    "escape", "back", "Back", id="screen.back", tooltip="Close what is open, or go back; asks first if work would end"
)
"""Goes back from a screen; each screen says how."""


class BackScreen(Screen[Any]):
    """A screen that escape leaves."""

    BINDINGS: ClassVar[list[BindingType]] = [BACK]

    def action_back(self) -> None:
        self.go_back()

    def go_back(self) -> None:
        """Show the screen below, or Runs if there is none."""
        if len(self.app.screen_stack) > 1:
            self.dismiss(None)
        else:
            open_screen(self, Screens.RUNS)


class Dialog(ModalScreen[_Answer | None], Generic[_Answer]):
    """A dialog that escape closes; it returns ``None`` then."""

    _is_withdrawn = False

    CSS_PATH = "dialog.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Cancel", id="dialog.back", tooltip="Close without changes")
    ]

    def action_back(self) -> None:
        self.dismiss(None)

    def withdraw(self) -> None:
        """Close the dialog once nothing is above it; one that is closed stays so."""
        self._is_withdrawn = True
        if self.is_active:
            self.dismiss(None)

    def on_screen_resume(self) -> None:
        """Close a dialog that was withdrawn while another one was above it."""
        if self._is_withdrawn:
            self.dismiss(None)


class AskingScreen(BackScreen):
    """A screen whose last question can be withdrawn."""

    _question: Dialog[Any] | None = None

    def tell_left(self) -> None:
        """Tell what continues after the user has left for another screen."""

    async def ask(self, question: Dialog[_Answer]) -> _Answer | None:
        """Open a dialog, which :meth:`withdraw_question` may close; returns its result."""
        self._question = question
        return await ask_user(self, question)

    async def make_changes(self, *changes: Callable[[], object]) -> None:
        """Make changes in a thread, one after the other; notify of each that fails."""
        for change in changes:
            with errors_shown(self):
                await asyncio.to_thread(change)

    def withdraw_question(self) -> None:
        """Close the dialog that was opened last, if it is still open: what it is about has ended by itself."""
        if self._question:
            self._question.withdraw()


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer and its button."""

    id: str
    """The dialog's result."""
    label: str
    """The button's label."""
    key: str
    """The key that selects it."""
    is_destructive: bool = False
    """Whether it cannot be undone."""


CANCEL = Answer("cancel", "Cancel", "escape")
"""Leaves everything as it is."""


OVERWRITE = Answer("overwrite", "Overwrite", "o", is_destructive=True)
DELETE = Answer("delete", "Delete", "d", is_destructive=True)


class Answers(Horizontal):
    """The buttons of a dialog, in a row if there is room for all of them, else one below the other."""

    def on_resize(self, event: Resize) -> None:
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
        self.query_one(f"#{self._answers[0].id}").focus()

    def action_answer(self, answer: str) -> None:
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
    detail = " ".join((f"In {printable(str(absolute_path(there[0]).parent))}: {names}.", more)).rstrip()
    return QuestionScreen(f"Overwrite {numbers.counted(len(there), 'file')}?", detail, (CANCEL, OVERWRITE))


KEEP = Answer("keep", "Keep going", "escape")
END = Answer("end", "End it", "e", is_destructive=True)
QUIT = Answer("end", "End it and quit", "e", is_destructive=True)


class WorkingScreen(AskingScreen):
    """A screen that works in threads and engine processes until it is left."""

    @property
    def work_in_progress(self) -> str:
        """The work that would end, such as ``the race``; empty while the screen does not work."""
        raise NotImplementedError

    def work_detail(self, *, closes: bool) -> str:
        """The consequence of ending the work, in a sentence, if the screen stays or closes with it."""
        return "What is not done yet is lost."

    async def may_end(self, *, closes: bool = False, quits: bool = False) -> bool:
        """Ask whether to end the work, if the screen works; returns whether to do what ends it.

        Args:
            closes: Whether the screen closes with it.
            quits: Whether the program quits then, and so the screen closes, too.
        """
        work = self.work_in_progress
        title = f"Quit accel-tui? It ends {work}." if quits else f"End {work}?"
        question = QuestionScreen(title, self.work_detail(closes=closes or quits), (KEEP, QUIT if quits else END))
        return not work or await self.ask(question) == END.id

    @awaiting
    async def action_back(self) -> None:
        """Go back to the screen below; asks first while this one works."""
        if await self.may_end(closes=True):
            self.go_back()
