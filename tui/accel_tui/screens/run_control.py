"""Sends commands to a run's engine, and asks the questions before some of them."""

import math
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import ClassVar, TypeVar

from textual.binding import Binding, BindingType
from textual.screen import ModalScreen, Screen

from accel_engine.errors import AccelError, RunError, UsageError
from accel_engine.run import request
from accel_engine.words import numbers
from accel_tui.run_state.state import RunState
from accel_tui.screens.cancel_question import CANCEL_RUN, cancel_question
from accel_tui.screens.entry_screen import EntryScreen
from accel_tui.screens.question_screen import CANCEL, Answer, QuestionScreen

DETACH = Answer("detach", "Detach", "d")
STOP = Answer("stop", "Stop with checkpoint", "s")
STOP_SCRIPT = Answer("stop", "Stop", "s")
STOP_NOW = Answer("stop_now", "Stop without checkpoint", "n", is_destructive=True)
STOP_FIT = Answer("stop", "Stop this fit", "s")
INTERRUPT = Answer("stop_now", "Interrupt the script", "n", is_destructive=True)

_SIGNALS = "SIGINT, as from Ctrl-C; once more SIGTERM, then SIGKILL"

_Answer = TypeVar("_Answer", str, float)

_FACTOR = re.compile(r"(?P<sign>[x×*/])\s*(?P<number>.+)", re.IGNORECASE)  # noqa: RUF001


def is_script(state: RunState) -> bool:
    """Whether the user's own script trains, in which case only the script can save."""
    return bool(state.info and state.info.script)


def after_detach(state: RunState) -> str:
    """What a live run does when its screen is left."""
    if state.is_queued:
        return "stays in the queue"
    return "stays paused" if state.paused else "keeps running" if state.is_launched else "keeps training"


def _stop_answers(state: RunState) -> tuple[Answer, ...]:
    """The ways to stop a run, the usual one first."""
    if state.is_launched:
        return (STOP_FIT, INTERRUPT) if state.can_control_training else (INTERRUPT,)
    return (STOP_SCRIPT,) if is_script(state) else (STOP, STOP_NOW)


def _stop_detail(state: RunState) -> str:
    """What each way to stop a run does."""
    if state.can_control_training and state.part and state.is_launched:
        stops = f"Stop this fit: {state.part.title} ends after the current batch, and the script keeps running."
        return f"{stops}\nInterrupt the script: it gets {_SIGNALS}."
    if state.is_launched:
        return f"The script gets {_SIGNALS}."
    if is_script(state):
        return "The script stops after the current batch; saving the model is up to the script."
    return "Continue the run later from the checkpoint. Without one, the steps since the last checkpoint are lost."


class RunControl:
    """Sends commands to a run's engine.

    Args:
        screen: Asks the questions, runs the threads, and shows why a command could not be sent.
        directory: The run's directory.
        on_change: Called with the commands that the engine has not answered yet.
    """

    def __init__(self, screen: Screen[None], directory: Path, on_change: Callable[[tuple[str, ...]], None]) -> None:
        self._screen = screen
        self._directory = directory
        self._on_change = on_change
        self._pending: tuple[str, ...] = ()
        self._question: ModalScreen[str | None] | ModalScreen[float | None] | None = None

    def send(self, command: str, argument: float | None = None, then: Callable[[], object] | None = None) -> None:
        """Send a command in a thread; then do something, for example leave: an exiting app runs no more workers."""
        self._set_pending((*self._pending, command))
        work = partial(self._request, command, argument, then)
        self._screen.run_worker(work, thread=True, exit_on_error=False, group="request")

    def drop_pending(self, *commands: str) -> None:
        """Stop waiting for the answers to commands."""
        self._set_pending(tuple(command for command in self._pending if command not in commands))

    def end(self) -> None:
        """Wait for no more answers, and withdraw a question: it was about a live run."""
        self._set_pending(())
        if self._question and self._question.is_active:
            self._question.dismiss(None)

    def stop(self, state: RunState) -> None:
        """Ask how to stop, then stop."""
        if state.is_queued:
            self._ask(cancel_question(self._directory.name, "s"), self._cancel)
            return

        def stop(answer: str | None) -> None:
            if answer in ("stop", "stop_now"):
                self._send_stop(answer, state)

        question = "Stop training?" if state.can_control_training else "Interrupt the script?"
        self._ask(QuestionScreen(question, _stop_detail(state), (*_stop_answers(state), CANCEL)), stop)

    def _cancel(self, answer: str | None) -> None:
        """Cancel the run that waits, in a thread."""

        def cancel() -> None:
            from accel_engine.run_queue.queue import cancel  # seldom needed

            try:
                cancel(self._directory.name)
            except AccelError as error:
                self._screen.call_later(self._failed, "stop", str(error))

        if answer == CANCEL_RUN:
            self._screen.run_worker(cancel, thread=True, exit_on_error=False, group="request")

    def _send_stop(self, command: str, state: RunState, then: Callable[[], object] | None = None) -> None:
        """Stop; of a script, the part that the question was about and no later one."""
        part = state.part.started.part if state.part and command == "stop" else None
        self.send(command, part, then)

    def change_learning_rate(self, state: RunState) -> None:
        """Ask for a learning rate, then set it."""

        def change(rate: float | None) -> None:
            if rate is not None:
                self.send("learning_rate", rate)

        self._ask(LearningRateScreen(state.learning_rate), change)

    def leave(self, question: str, state: RunState, leave: Callable[[], object]) -> None:
        """Leave; asks first while the run is live."""

        def go(answer: str | None) -> None:
            if answer in ("stop", "stop_now"):
                self._send_stop(answer, state, leave)
            elif answer == "detach":
                leave()

        if not state.live or state.is_queued:
            leave()
            return
        activity = "training" if state.can_control_training else "running the script"
        question = f"{question} The run is {'paused' if state.paused else activity}."
        again = "" if state.is_directory_lost else f"; accel-tui watch {self._directory.name} shows it again"
        detail = f"After Detach it {after_detach(state)}{again}."
        stops = _stop_answers(state) if state.is_launched else _stop_answers(state)[:1]
        self._ask(QuestionScreen(question, detail, (CANCEL, DETACH, *stops)), go)

    def _ask(self, question: ModalScreen[_Answer | None], answer: Callable[[_Answer | None], None]) -> None:
        self._question = question
        self._screen.app.push_screen(question, answer)

    def _set_pending(self, commands: tuple[str, ...]) -> None:
        self._pending = commands
        self._on_change(commands)

    def _request(self, command: str, argument: float | None, then: Callable[[], object] | None) -> None:
        try:
            request(self._directory, command, argument)
        except RunError as error:
            self._screen.call_later(self._failed, command, str(error))
        else:
            if then:
                self._screen.app.call_later(then)

    def _failed(self, command: str, problem: str) -> None:
        self.drop_pending(command)
        self._screen.notify(problem, severity="error", markup=False)


def parse_rate(text: str, current: float | None) -> float:
    """Parse a learning rate.

    Args:
        text: A number, or a change of the current rate: ``x0.5``, ``*0.1``, ``/10``.
        current: The current rate, if known.

    Raises:
        UsageError: The text is not a number greater than 0.
    """
    text = text.strip()
    relative = _FACTOR.fullmatch(text)
    if relative and current is None:
        raise UsageError("the current rate is unknown: enter a number, e.g. 1e-4")
    try:
        number = float(relative["number"] if relative else text)
    except ValueError:
        raise UsageError("must be a number, e.g. 1e-4, or a change, e.g. x0.5 or /10") from None
    if relative and current is not None:
        number = current / (number or math.nan) if relative["sign"] == "/" else current * number
    if not (math.isfinite(number) and number > 0):
        raise UsageError("must be greater than 0")
    return number


class LearningRateScreen(EntryScreen[float]):
    """Asks for a learning rate.

    Args:
        current: The current rate; ``None`` if unknown.
    """

    FIELD = "rate"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Cancel", id="learning-rate.back", tooltip="Close without changes")
    ]

    def __init__(self, current: float | None) -> None:
        now = "unknown" if current is None else numbers.learning_rate(current)
        super().__init__("Learning rate", f"Current: {now}. From the next step on:", placeholder="1e-4, x0.5, /10")
        self._current = current

    def parse(self, text: str) -> float:
        """Parse a rate, or a change of the current one."""
        return parse_rate(text, self._current)

    def effect(self, value: float) -> str:
        """Name the rate."""
        return f"sets {numbers.learning_rate(value)}"
