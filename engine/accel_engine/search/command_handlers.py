"""Handles the commands of users to a search."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from accel_engine.errors import AccelError, UsageError
from accel_engine.plan import DEFAULTS
from accel_engine.search.definition import MAX_TRIALS
from accel_engine.search.progress import check_enough
from accel_engine.search.scheduler import Scheduler
from accel_engine.search.study_database import StudyCommand
from accel_engine.search.trial import PendingAction, Trial, TrialState


def handle_commands(scheduler: Scheduler) -> None:
    """Do and answer the commands that have no answer yet."""
    database = scheduler.study.database
    for command in database.commands():
        try:
            answer = _HANDLERS[command.name](scheduler, command)
        except KeyError:
            database.answer(command.id, f"unknown command {command.name!r}", obeyed=False)
        except AccelError as error:
            database.answer(command.id, str(error), obeyed=False)
        else:
            database.answer(command.id, answer, obeyed=True)


def _stop(scheduler: Scheduler, _: StudyCommand) -> str:
    scheduler.stopping = True
    return "the search stops; its live trials stop with a checkpoint"


def _stop_trial(scheduler: Scheduler, command: StudyCommand) -> str:
    trial = _live(scheduler, command)
    scheduler.stop_trial(trial, PendingAction.STOP, f"stopped by {command.who}")
    return f"trial {trial.number} stops with a checkpoint"


def _prune(scheduler: Scheduler, command: StudyCommand) -> str:
    trial = replace(_live(scheduler, command), pruned_by_user=True)
    scheduler.stop_trial(trial, PendingAction.PRUNE, f"pruned by {command.who}")
    return f"trial {trial.number} is pruned"


def _prolong(scheduler: Scheduler, command: StudyCommand) -> str:
    trial = _own(scheduler, command)
    if trial.state.live:
        raise UsageError(f"trial {trial.number} is {trial.state}: prolong it when it has ended")
    if not scheduler.runs.exists(trial.run):
        raise UsageError(f"trial {trial.number} keeps its result, but cannot be prolonged: run {trial.run} was deleted")
    more = _number(command, "the number of epochs")
    default = scheduler.definition.plan.get("epochs", DEFAULTS["epochs"])
    before = trial.epochs or trial.values.get("epochs") or default
    epochs = (
        int(before) + more
        if trial.state is TrialState.FINISHED
        else max(int(before), _reached(scheduler, trial) + more)
    )
    scheduler.continue_(trial, epochs=epochs)
    return f"trial {trial.number} is continued, up to {epochs} epochs"


def _reached(scheduler: Scheduler, trial: Trial) -> int:
    return max((report.epoch for report in scheduler.study.reports[trial.number].values()), default=0)


def _set_trials(scheduler: Scheduler, command: StudyCommand) -> str:
    trials = _number(command, "the number of trials")
    check_enough(trials, scheduler.study.trials.values())
    scheduler.study.redefine(trials=trials)
    return f"the search has {trials} trials"


def _number(command: StudyCommand, what: str) -> int:
    value = command.argument
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_TRIALS:
        raise UsageError(f"{what} must be an integer from 1 to {MAX_TRIALS:,}, not {value!r}")
    return value


def _own(scheduler: Scheduler, command: StudyCommand) -> Trial:
    if command.trial is None or command.trial not in scheduler.study.trials:
        raise UsageError(f"there is no trial {command.trial}")
    trial = scheduler.study.trials[command.trial]
    if trial.machine:
        raise UsageError(f"trial {trial.number} is trained on {trial.machine}: command it there")
    if trial.duplicate_of is not None:
        raise UsageError(f"trial {trial.number} shares the run of trial {trial.duplicate_of}: name that one")
    if not trial.run:
        raise UsageError(f"trial {trial.number} has no run: {trial.reason or trial.state}")
    return trial


def _live(scheduler: Scheduler, command: StudyCommand) -> Trial:
    trial = _own(scheduler, command)
    if not trial.state.live:
        raise UsageError(f"trial {trial.number} is {trial.state} already")
    return trial


_HANDLERS: Mapping[str, Callable[[Scheduler, StudyCommand], str]] = {
    "stop": _stop,
    "stop_trial": _stop_trial,
    "prune": _prune,
    "prolong": _prolong,
    "set_trials": _set_trials,
}
