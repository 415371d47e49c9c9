"""Steering a run from a screen: what is asked of its engine, and what becomes of it when one leaves."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from textual import on, work
from textual.message import Message
from textual.reactive import reactive
from textual.screen import ModalScreen

from accel_engine.errors import RunError
from accel_engine.run import request
from accel_tui.plan.starting import CONTINUABLE
from accel_tui.run.state import RunState
from accel_tui.screens.learning_rate_screen import LearningRateScreen
from accel_tui.screens.question_screen import Answer, QuestionScreen
from accel_tui.terminal.dirty_regions import DirtyRegionScreen

if TYPE_CHECKING:
    from accel_tui.app import AccelApp

STAY = Answer("stay", "Stay", "escape")
DETACH = Answer("detach", "Detach", "d")
STOP = Answer("stop", "Stop and keep", "s")
STOP_SCRIPT = Answer("stop", "Stop", "s")
STOP_NOW = Answer("stop_now", "Stop now", "n", grave=True)
GO_ON = Answer("stay", "Go on", "escape")


class RunControlScreen(DirtyRegionScreen):
    """A screen of a run that can be steered; which keys do so, and where they are, is said by who shows it.

    Args:
        directory: The run's.
    """

    state: reactive[RunState] = reactive(RunState(), repaint=False, init=False)
    """The run as far as it was followed."""

    asked: reactive[tuple[str, ...]] = reactive((), repaint=False, init=False)
    """Commands that the engine has not answered yet."""

    @dataclass
    class Refused(Message):
        """A command could not be handed to the engine."""

        command: str
        words: str

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.directory = directory
        self._question: ModalScreen[str | None] | ModalScreen[float | None] | None = None

    @property
    def _host(self) -> "AccelApp":
        return cast("AccelApp", self.app)

    @property
    def _is_script(self) -> bool:
        """Whether a script of the user's trains, which alone can keep its work."""
        return bool(self.state.info and self.state.info.script)

    @on(Refused)
    def _tell_refusal(self, message: Refused) -> None:
        message.stop()
        self._forget(message.command)
        self.notify(message.words, severity="error", markup=False)

    def watch_asked(self) -> None:
        """What was asked for is not offered again."""
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer what can be done with the run as it stands."""
        del parameters
        state = self.state
        match action:
            case "pause":
                return state.live and not state.paused and "pause" not in self.asked
            case "go_on":
                return state.paused and "resume" not in self.asked
            case "stop" | "learning_rate" | "detach":
                return state.live
            case "checkpoint":
                return state.live and not self._is_script
            case "inside" | "log" | "search_log":
                return not self._is_script  # which keeps its model, its data and what it says to itself
            case "take_up":
                return state.info is not None and state.info.status in CONTINUABLE and not self._is_script
        return True

    def action_pause(self) -> None:
        """Ask for a pause."""
        self._ask("pause")

    def action_go_on(self) -> None:
        """Ask to go on."""
        self._ask("resume")

    def action_checkpoint(self) -> None:
        """Ask for a checkpoint."""
        self._ask("checkpoint")

    def action_stop(self) -> None:
        """Ask how to stop, and stop."""

        def stop(answer: str | None) -> None:
            if answer in ("stop", "stop_now"):
                self._ask(answer)

        self._question = QuestionScreen(
            "Stop training?",
            "The script ends training after this batch; what it keeps is up to it."
            if self._is_script
            else "Stop and keep writes a checkpoint first, from which the run can be resumed. "
            "Stop now loses the steps since the last one.",
            (STOP_SCRIPT, GO_ON) if self._is_script else (STOP, STOP_NOW, GO_ON),
        )
        self.app.push_screen(self._question, stop)

    def action_learning_rate(self) -> None:
        """Ask for a learning rate, and set it."""

        def change(rate: float | None) -> None:
            if rate is not None:
                self._ask("learning_rate", rate)

        self._question = LearningRateScreen(self.state.learning_rate)
        self.app.push_screen(self._question, change)

    def action_take_up(self) -> None:
        """Train on from the last checkpoint."""
        self._host.resume_run(self.directory)

    def action_detach(self) -> None:
        """Leave; the run goes on."""
        self.notify(f"accel-tui watch {self.directory.name}", title="Training goes on", markup=False)
        self._go_back()

    def action_leave(self) -> None:
        """Leave for where one came from; asks what becomes of a run that is live."""
        self._leave(self._go_back)

    def action_quit(self) -> None:
        """Leave the program; asks what becomes of a run that is live."""
        self._leave(self.app.exit)

    def _go_back(self) -> None:
        if len(self.app.screen_stack) > 1:
            self.app.pop_screen()
        else:
            self._host.show_runs()

    def _leave(self, leave: Callable[[], object]) -> None:
        if not self.state.live:
            leave()
            return

        def go(answer: str | None) -> None:
            if answer == "stop":
                self._stop_and(leave)
            elif answer == "detach":
                leave()

        self._question = QuestionScreen(
            "The run is still training. What now?",
            "Detach leaves it training: come back with accel-tui watch "
            f"{self.directory.name}. Stop{'' if self._is_script else ' and keep'} ends it"
            f"{'' if self._is_script else ' with a checkpoint'}.",
            (STAY, DETACH, STOP_SCRIPT if self._is_script else STOP),
        )
        self.app.push_screen(self._question, go)

    @work(thread=True, exit_on_error=False, group="stop")
    def _stop_and(self, leave: Callable[[], object]) -> None:
        """Leave only when the engine has been asked: a program that ends takes no more work up."""
        try:
            request(self.directory, "stop")
        except RunError as error:
            self.post_message(self.Refused("stop", str(error)))
        else:
            self.app.call_from_thread(leave)

    def _ask(self, command: str, argument: float | None = None) -> None:
        self.asked = (*self.asked, command)
        self._request(command, argument)

    def _forget(self, command: str) -> None:
        self.asked = tuple(name for name in self.asked if name != command)

    @work(thread=True, exit_on_error=False, group="request")
    def _request(self, command: str, argument: float | None) -> None:
        try:
            request(self.directory, command, argument)
        except RunError as error:
            self.post_message(self.Refused(command, str(error)))
