"""Questions before something is done with a run."""

import math
import re
from collections.abc import Mapping

from accel_engine.errors import UsageError
from accel_engine.words import numbers
from accel_tui.formatting.runs import part_title
from accel_tui.plan.trained_run import TrainedRun, parse_epochs
from accel_tui.run_state.state import RunState
from accel_tui.screens.asking import CANCEL, Answer, QuestionScreen
from accel_tui.screens.entry_screen import Entry, EntryScreen

DETACH = Answer("detach", "Detach", "d")
STOP = Answer("stop", "Stop with checkpoint", "s")
STOP_SCRIPT = Answer("stop", "Stop", "s")
STOP_NOW = Answer("stop_now", "Stop without checkpoint", "n", is_destructive=True)
STOP_FIT = Answer("stop", "Stop this fit", "s")
INTERRUPT = Answer("stop_now", "Interrupt the script", "n", is_destructive=True)

CANCEL_RUN = "cancel_run"
"""The answer that cancels it."""

_KEEP = Answer("keep", "Keep it in the queue", "escape")
_DETAIL = "It is stopped, and keeps its plan. A run that has trained before is again as it had ended."

_SIGNALS = "SIGINT, as from Ctrl-C; once more SIGTERM, then SIGKILL"

_FACTOR = re.compile(r"(?P<sign>[x×*/])\s*(?P<number>.+)", re.IGNORECASE)  # noqa: RUF001


def is_script(state: RunState) -> bool:
    """Whether the user's own script trains, in which case only the script can save."""
    return bool(state.info and state.info.script)


def after_detach(state: RunState) -> str:
    """The note on what a live run does when its screen is left."""
    if state.is_queued:
        return "stays in the queue"
    return "stays paused" if state.paused else "keeps running" if state.is_launched else "keeps training"


def _stop_answers(state: RunState) -> tuple[Answer, ...]:
    """The ways to stop a run, the usual one first."""
    if state.is_launched:
        return (STOP_FIT, INTERRUPT) if state.can_control_training else (INTERRUPT,)
    return (STOP_SCRIPT,) if is_script(state) else (STOP, STOP_NOW)


def _stop_detail(state: RunState) -> str:
    """The effect of each way to stop a run."""
    if state.can_control_training and state.part and state.is_launched:
        stops = f"Stop this fit: {part_title(state.part)} ends after the current batch, and the script keeps running."
        return f"{stops}\nInterrupt the script: it gets {_SIGNALS}."
    if state.is_launched:
        return f"The script gets {_SIGNALS}."
    if is_script(state):
        return "The script stops after the current batch; saving the model is up to the script."
    return "Continue the run later from the checkpoint. Without one, the steps since the last checkpoint are lost."


def cancel_question(run: str, key: str) -> QuestionScreen:
    """Ask whether to cancel a run that waits.

    Args:
        run: Its id.
        key: The key that cancels it.
    """
    cancel = Answer(CANCEL_RUN, "Cancel the run", key, is_destructive=True)
    return QuestionScreen(f"Cancel run {run}?", _DETAIL, (_KEEP, cancel))


def stop_question(state: RunState) -> QuestionScreen:
    """Ask how to stop a run."""
    question = "Stop training?" if state.can_control_training else "Interrupt the script?"
    return QuestionScreen(question, _stop_detail(state), (*_stop_answers(state), CANCEL))


def leave_question(question: str, run: str, state: RunState) -> QuestionScreen:
    """Ask whether to leave a live run.

    Args:
        question: What is left.
        run: Its id.
        state: Its state.
    """
    activity = "training" if state.can_control_training else "running the script"
    again = "" if state.is_directory_lost else f"; accel-tui watch {run} shows it again"
    stops = _stop_answers(state) if state.is_launched else _stop_answers(state)[:1]
    return QuestionScreen(
        f"{question} The run is {'paused' if state.paused else activity}.",
        f"After Detach it {after_detach(state)}{again}.",
        (CANCEL, DETACH, *stops),
    )


def stop_command(answer: str, state: RunState) -> tuple[str, float | None]:
    """The command of an answer, and its argument: of a script, the part that the question was about."""
    return answer, state.part.started.part if state.part and answer == "stop" else None


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

    def __init__(self, current: float | None) -> None:
        now = "unknown" if current is None else numbers.learning_rate(current)
        detail = f"Current: {now}. From the next step on:"
        super().__init__("Learning rate", detail, Entry("rate", placeholder="1e-4, x0.5, /10"))
        self._current = current

    def parse(self, texts: Mapping[str, str]) -> float:
        """Parse a rate, or a change of the current one."""
        return parse_rate(texts["rate"], self._current)

    def effect(self, value: float) -> str:
        """Name the rate."""
        return f"sets {numbers.learning_rate(value)}"


class TrainLongerScreen(EntryScreen[int]):
    """Asks for the epochs of a finished run in total.

    Args:
        run: The run.
    """

    def __init__(self, run: TrainedRun) -> None:
        of_plan = f" of {run.plan.epochs:,} planned" if run.trained < run.plan.epochs else ""
        trained = f"{numbers.counted(run.trained, 'epoch')}{of_plan}"
        most = str(max(run.trained + run.plan.epochs, run.minimum))
        detail = f"Trained: {trained}. Epochs in total, or +N for N more:"
        super().__init__("Train longer", detail, Entry("epochs", most))
        self._run = run

    def parse(self, texts: Mapping[str, str]) -> int:
        """Parse the epochs in total."""
        return parse_epochs(texts["epochs"], self._run)

    def effect(self, value: int) -> str:
        """Count the epochs."""
        return f"trains {value - self._run.trained:,} more, {numbers.counted(value, 'epoch')} in total"
