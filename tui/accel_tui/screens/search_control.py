"""What a user is asked before some commands to a search."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.screen import Screen

from accel_engine.errors import AccelError
from accel_engine.search.definition import StudyDefinition
from accel_engine.search.trial import Trial
from accel_engine.text import printable_line
from accel_engine.words import numbers
from accel_tui.plan.whole_number import parse_count
from accel_tui.screens.change_search_screen import Change, ChangeSearchScreen
from accel_tui.screens.entry_screen import EntryScreen
from accel_tui.screens.question_screen import CANCEL, Answer, QuestionScreen
from accel_tui.screens.run_control import STOP as STOP_TRIAL
from accel_tui.study_state.study_follower import StudyRequest

QUIT = Answer("quit", "Quit", "q")
STOP = Answer("stop", "Stop the search", "s", is_destructive=True)


class SearchControl:
    """Sends commands to the process of a search.

    Args:
        screen: Asks the questions, runs the threads, and shows what went wrong.
        directory: The study's directory.
        send: Sends a command.
    """

    def __init__(self, screen: Screen[None], directory: Path, send: Callable[[StudyRequest], object]) -> None:
        self._screen = screen
        self._directory = directory
        self._send = send

    def stop_trial(self, trial: Trial) -> None:
        """Ask, then stop a trial, as the screen of its run does."""
        number = trial.number

        def stop(answer: str | None) -> None:
            if answer == STOP_TRIAL.id:
                self._send(StudyRequest("stop_trial", number))

        detail = "What it has reached counts. l trains it for more epochs later."
        self._screen.app.push_screen(QuestionScreen(f"Stop trial {number}?", detail, (STOP_TRIAL, CANCEL)), stop)

    def prolong(self, trial: Trial) -> None:
        """Ask for how many more epochs to train a trial."""
        number = trial.number

        def prolong(epochs: int | None) -> None:
            if epochs is not None:
                self._send(StudyRequest("prolong", number, epochs))

        self._screen.app.push_screen(ProlongScreen(number), prolong)

    def change(self, definition: StudyDefinition) -> None:
        """Ask for other ranges and another number of trials."""

        def change(changes: Sequence[Change] | None) -> None:
            for name, argument in changes or ():
                self._send(StudyRequest(name, argument=argument))

        self._screen.app.push_screen(ChangeSearchScreen(definition), change)

    def stop(self) -> None:
        """Ask, then stop the search."""

        def stop(answer: str | None) -> None:
            if answer == STOP.id:
                self._send(StudyRequest("stop"))

        detail = "Its live trials stop with a checkpoint. R continues the search later."
        self._screen.app.push_screen(QuestionScreen("Stop the search?", detail, (CANCEL, STOP)), stop)

    def quit(self, *, is_running: bool) -> None:
        """Quit; asks first while the search runs."""

        def leave(answer: str | None) -> None:
            if answer == QUIT.id:
                self._screen.app.exit()

        if not is_running:
            self._screen.app.exit()
            return
        detail = f"It runs on; accel-tui search --resume {printable_line(self._directory.name)} shows it again."
        question = "Quit accel-tui? The search is running."
        self._screen.app.push_screen(QuestionScreen(question, detail, (CANCEL, QUIT)), leave)

    def resume(self) -> None:
        """Continue the search in a process of its own."""
        self._screen.run_worker(self._resume, thread=True, exclusive=True, exit_on_error=False, group="resume")

    def _resume(self) -> None:
        from accel_engine.search.start_study import resume_study

        try:
            resume_study(self._directory)
        except AccelError as error:
            self._screen.app.notify(str(error), title="Not continued", severity="error", markup=False)


class ProlongScreen(EntryScreen[int]):
    """Asks for a number of epochs.

    Args:
        trial: Number of the trial.
    """

    FIELD = "epochs"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Cancel", id="prolong.back", tooltip="Close without changes")
    ]

    def __init__(self, trial: int) -> None:
        detail = "It continues from its last checkpoint. Number of epochs more:"
        super().__init__(f"Prolong trial {trial}", detail, "5")

    def parse(self, text: str) -> int:
        """Parse a number of epochs."""
        return parse_count(text, "epochs")

    def effect(self, value: int) -> str:
        """Count the epochs."""
        return f"trains {numbers.counted(value, 'epoch')} more"
