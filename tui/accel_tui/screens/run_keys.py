"""The keys of the Run screen, and what each needs."""

from collections.abc import Collection

from textual.binding import Binding, BindingType

from accel_engine.process.start_run import CONTINUABLE
from accel_engine.run import Status
from accel_tui.run_state.state import RunState

BINDINGS: tuple[BindingType, ...] = (
    Binding("p,space", "pause", "Pause", id="run.pause", tooltip="Pause or resume training"),
    Binding("p,space", "resume", "Resume", id="run.pause", tooltip="Pause or resume training"),
    Binding(
        "s",
        "stop",
        "Stop",
        id="run.stop",
        tooltip="Stop training, with or without a final checkpoint. In a script, stop the current fit",
    ),
    Binding(
        "r",
        "learning_rate",
        "Learning rate",
        id="run.learning-rate",
        tooltip="Change the learning rate. In a script, that of the current fit",
    ),
    Binding(
        "F",
        "find_rate",
        "Find rate",
        id="run.find-rate",
        show=False,  # the keys that a run needs more often leave no room
        tooltip="Find a learning rate from the last checkpoint, while the run is paused",
    ),
    Binding("c", "checkpoint", "Checkpoint", id="run.checkpoint", tooltip="Save a checkpoint now"),
    Binding("R", "continue", "Continue", id="run.continue", tooltip="Continue from the last checkpoint"),
    Binding("R", "train_longer", "Train longer", id="run.continue", tooltip="Continue for more epochs"),
    Binding("l", "log", "Log", id="run.log", tooltip="Show or hide the log"),
    Binding("slash", "search_log", id="run.search", tooltip="Search the log"),
    Binding("i", "details", "Details", id="run.details", tooltip="Show or hide the details and notices"),
    Binding("w", "diagnostics", "Diagnostics", id="run.diagnostics", tooltip="Show confusion matrix, samples, layers"),
    Binding("A", "advice", "Advice", id="run.advice", tooltip="Show what is wrong with the run, and what to do"),
    Binding("b", "bench", "Bench", id="run.bench", tooltip="Measure the inference of the run's model"),
    Binding("E", "export", "Export", id="run.export", tooltip="Export the trained model to other formats"),
    Binding("P", "predict", "Predict", id="run.predict", tooltip="Predict examples with the trained model"),
    Binding("d", "detach", "Detach", id="run.detach", tooltip="Leave the run; it keeps training"),
    Binding("escape", "leave", "Back", id="run.back", tooltip="Go back; asks first while the run is live"),
    Binding("q", "quit", "Quit", id="run.quit", tooltip="Quit accel-tui; asks first while the run is live"),
)
"""Keys that control the run, show parts of it, and open what can be done with it."""

OFFERED_BY = ("live", "is_queued", "paused", "checkpoint", "can_control_training", "is_directory_lost")
"""What of a state decides which actions are offered."""


def is_offered(action: str, state: RunState, pending: Collection[str]) -> bool | None:
    """Whether a run's state allows an action, and the command of it is not pending; ``None`` to show its key dimmed."""
    match action:
        case "pause":
            is_possible = state.live and not (state.paused or state.is_queued or "pause" in pending)
            return _in_training(state) if is_possible else False
        case "resume":
            return state.paused and "resume" not in pending
        case "learning_rate":
            return _in_training(state) if state.live and not state.is_queued else False
        case "find_rate":
            return state.live and not state.is_queued and _has_engine(state)
        case "stop" | "detach":
            return state.live
        case "checkpoint":
            return state.live and not state.is_queued and _has_engine(state)
        case "diagnostics" | "advice":
            return not (state.info and state.info.bench)
        case "bench" | "export" | "predict":
            has_none_yet = state.live and _has_engine(state)
            return _has_checkpoint(state) or (None if has_none_yet else False)
        case "log" | "search_log":
            return has_log(state)
        case "continue":
            ended_early = state.info is not None and state.info.status in CONTINUABLE
            return ended_early and _has_checkpoint(state)
        case "train_longer":
            is_finished = state.info is not None and state.info.status is Status.FINISHED
            return is_finished and _has_checkpoint(state)
    return True


def _has_checkpoint(state: RunState) -> bool:
    """Whether an engine can continue the run, and its model can be used."""
    return state.checkpoint is not None and _has_engine(state) and not state.is_directory_lost


def has_log(state: RunState) -> bool:
    """Whether the output of the process that trains is in the run's log."""
    return state.is_launched or _has_engine(state)


def _has_engine(state: RunState) -> bool:
    """Whether an engine trains the run, as far as is known."""
    return state.info is None or state.info.has_engine


def _in_training(state: RunState) -> bool | None:
    """Whether training takes commands; ``None`` while a script does something else: another part may follow."""
    return state.can_control_training or None
