"""What screens share: escape goes back, and actions await dialogs."""

import asyncio
import types
from collections.abc import Callable, Coroutine, Generator
from functools import wraps
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, TypeVar

from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.screen import ModalScreen, Screen

from accel_tui.host import Screens, open_screen
from accel_tui.terminal.textual_private import is_being_removed

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
        """Go back to the screen below."""
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
        """Close the dialog."""
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

    async def ask(self, question: Dialog[_Answer]) -> _Answer | None:
        """Open a dialog, which :meth:`withdraw_question` may close; returns its result."""
        self._question = question
        return await ask_user(self, question)

    def withdraw_question(self) -> None:
        """Close the dialog that was opened last, if it is still open: what it is about has ended by itself."""
        if self._question:
            self._question.withdraw()
