"""Commands of the run screen: pause, stop, learning rate, checkpoint, detach, continue."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from textual import on, work
from textual.message import Message
from textual.reactive import reactive
from textual.screen import ModalScreen

from accel_engine.errors import RunError
from accel_engine.launch.start_run import CONTINUABLE
from accel_engine.run import request
from accel_tui.run_state.state import RunState
from accel_tui.screens.learning_rate_screen import LearningRateScreen
from accel_tui.screens.question_screen import Answer, QuestionScreen
from accel_tui.terminal.dirty_regions import DirtyRegionScreen

if TYPE_CHECKING:
    from accel_tui.app import AccelApp

STAY = Answer("stay", "Cancel", "escape")
DETACH = Answer("detach", "Detach", "d")
STOP = Answer("stop", "Stop with checkpoint", "s")
STOP_SCRIPT = Answer("stop", "Stop", "s")
STOP_NOW = Answer("stop_now", "Stop without checkpoint", "n", is_destructive=True)


class RunControlScreen(DirtyRegionScreen):
    """A screen that controls a run.

    Args:
        directory: The run's directory.
    """

    state: reactive[RunState] = reactive(RunState(), repaint=False, init=False)
    """The latest state of the run."""

    pending_commands: reactive[tuple[str, ...]] = reactive((), repaint=False, init=False)
    """Commands that the engine has not answered yet."""

    @dataclass
    class CommandFailed(Message):
        """A command could not be sent to the engine."""

        command: str
        words: str

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.directory = directory
        self._question: ModalScreen[str | None] | ModalScreen[float | None] | None = None

    @property
    def _accel_app(self) -> "AccelApp":
        return cast("AccelApp", self.app)

    @property
    def _is_script(self) -> bool:
        """Whether the user's own script trains, in which case only the script can save."""
        return bool(self.state.info and self.state.info.script)

    @on(CommandFailed)
    def _notify_failure(self, message: CommandFailed) -> None:
        message.stop()
        self._clear_pending(message.command)
        self.notify(message.words, severity="error", markup=False)

    def watch_pending_commands(self) -> None:
        """Update the keys: a pending command is not offered again."""
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the actions that the run's state allows."""
        del parameters
        state = self.state
        match action:
            case "pause":
                return state.live and not state.paused and "pause" not in self.pending_commands
            case "resume":
                return state.paused and "resume" not in self.pending_commands
            case "stop" | "learning_rate" | "detach":
                return state.live
            case "checkpoint":
                return state.live and not self._is_script
            case "diagnostics" | "log" | "search_log":
                return not self._is_script  # a script keeps its model, data and output to itself
            case "continue":
                ended_early = state.info is not None and state.info.status in CONTINUABLE
                return ended_early and state.checkpoint is not None and not self._is_script
        return True

    def action_pause(self) -> None:
        """Pause training."""
        self._send_command("pause")

    def action_resume(self) -> None:
        """Resume training."""
        self._send_command("resume")

    def action_checkpoint(self) -> None:
        """Save a checkpoint."""
        self._send_command("checkpoint")

    def action_stop(self) -> None:
        """Ask how to stop, then stop."""

        def stop(answer: str | None) -> None:
            if answer in ("stop", "stop_now"):
                self._send_command(answer)

        self._question = QuestionScreen(
            "Stop training?",
            "The script stops after the current batch; saving the model is up to the script."
            if self._is_script
            else "Continue the run later from the checkpoint. "
            "Without one, the steps since the last checkpoint are lost.",
            (STOP_SCRIPT, STAY) if self._is_script else (STOP, STOP_NOW, STAY),
        )
        self.app.push_screen(self._question, stop)

    def action_learning_rate(self) -> None:
        """Ask for a learning rate, then set it."""

        def change(rate: float | None) -> None:
            if rate is not None:
                self._send_command("learning_rate", rate)

        self._question = LearningRateScreen(self.state.learning_rate)
        self.app.push_screen(self._question, change)

    def action_continue(self) -> None:
        """Continue from the last checkpoint."""
        self._accel_app.continue_run(self.directory)

    def action_detach(self) -> None:
        """Leave the run; it keeps training."""
        self.notify(
            f"Show it again: accel-tui watch {self.directory.name}",
            title="The run stays paused" if self.state.paused else "The run keeps training",
            markup=False,
        )
        self._go_back()

    def action_leave(self) -> None:
        """Go back; asks first while the run is live."""
        self._leave("Leave the run?", self._go_back)

    def action_quit(self) -> None:
        """Quit; asks first while the run is live."""
        self._leave("Quit accel-tui?", self.app.exit)

    def _go_back(self) -> None:
        if len(self.app.screen_stack) > 1:
            self.app.pop_screen()
        else:
            self._accel_app.show_runs()

    def _leave(self, question: str, leave: Callable[[], object]) -> None:
        if not self.state.live:
            leave()
            return

        def go(answer: str | None) -> None:
            if answer == "stop":
                self._stop_then(leave)
            elif answer == "detach":
                leave()

        self._question = QuestionScreen(
            f"{question} The run is {'paused' if self.state.paused else 'training'}.",
            f"After Detach it {'stays paused' if self.state.paused else 'keeps training'}; "
            f"accel-tui watch {self.directory.name} shows it again.",
            (STAY, DETACH, STOP_SCRIPT if self._is_script else STOP),
        )
        self.app.push_screen(self._question, go)

    @work(thread=True, exit_on_error=False, group="stop")
    def _stop_then(self, leave: Callable[[], object]) -> None:
        """Send ``stop`` before leaving: an exiting app runs no more workers."""
        try:
            request(self.directory, "stop")
        except RunError as error:
            self.post_message(self.CommandFailed("stop", str(error)))
        else:
            self.app.call_from_thread(leave)

    def _send_command(self, command: str, argument: float | None = None) -> None:
        self.pending_commands = (*self.pending_commands, command)
        self._request(command, argument)

    def _clear_pending(self, command: str) -> None:
        self.pending_commands = tuple(name for name in self.pending_commands if name != command)

    @work(thread=True, exit_on_error=False, group="request")
    def _request(self, command: str, argument: float | None) -> None:
        try:
            request(self.directory, command, argument)
        except RunError as error:
            self.post_message(self.CommandFailed(command, str(error)))
