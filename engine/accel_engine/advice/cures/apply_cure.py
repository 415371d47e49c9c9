"""Applies a cure to a run, and takes it back: a change of the plan, and the inverse change.

It is made by command in a live run, else by continuing the run with the changed plan.
"""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from accel_engine.devices import detect
from accel_engine.errors import RunError
from accel_engine.events import CURE, UNDO, CommandAnswered, LearningRateChanged, ModelBuilt, PlanChanged, RunStarted
from accel_engine.plan import SPECS, Plan, resolved_plan
from accel_engine.plan.changed_plan import changed_plan, command_arguments, options_text, with_planned_rate
from accel_engine.process import run_change
from accel_engine.process.run_change import Launch, steps_taken
from accel_engine.process.start_run import CONTINUABLE, for_a_new_run, prepare_continuation
from accel_engine.run import RunInfo, send_command
from accel_engine.run.directory.run_paths import host_function, host_of_run, latest_checkpoint, reference
from accel_engine.run.engine.status import read_info
from accel_engine.run.history.history import CureChange, History, stored_history
from accel_engine.run.runs.plan_changes import CHANGEABLE
from accel_engine.run.store.database import reading
from accel_engine.text import shell_command

Why = tuple[str, str]
"""The reason of a change, in words, and its purpose."""


class Method(StrEnum):
    """How a cure was applied or taken back."""

    COMMAND = "by command"
    CONTINUED = "by continuing the run"


@dataclass(frozen=True, slots=True)
class AppliedCure:
    """A cure that was applied or taken back."""

    method: Method
    """How it was applied or taken back."""
    changes: Mapping[str, Any]
    """The changed fields, with their new values."""
    before: Mapping[str, Any]
    """The same fields, with the values before."""
    text: str
    """The change that was made, in words."""
    process: "subprocess.Popen[str] | None" = field(default=None, repr=False)
    """The engine's process, if a new one was started."""


@dataclass(frozen=True, slots=True)
class _Run:
    """A run that a cure is applied to."""

    info: RunInfo
    history: History

    @property
    def replicas(self) -> int:
        """Number of its replicas."""
        return self.history.built.replicas if self.history.built else 1

    @property
    def rate(self) -> float | None:
        """The optimizer's constant learning rate; ``None`` if it has none, or is unknown."""
        return None if self.history.schedule else self.history.learning_rate

    def commands(self, changes: Mapping[str, Any]) -> dict[str, float] | None:
        """Arguments of the commands that change all of the fields; ``None`` if commands cannot, or it is not live."""
        if self.info.plan is None or not self.info.status.live:
            return None
        built = self.history.built
        return command_arguments(self.info.plan, built.steps_per_epoch if built else 0, changes)


def _read(directory: Path) -> _Run:
    kinds = (RunStarted, ModelBuilt, LearningRateChanged, PlanChanged, CommandAnswered)
    with reading(directory) as database:
        return _Run(read_info(database), stored_history(database, *kinds))


def cure_of(directory: Path) -> CureChange | None:
    """The last cure of a run that was not taken back; ``None`` if there is none.

    Raises:
        RunError: The run cannot be read.
    """
    return next(reversed(_read(directory).history.cures), None)


def apply(
    directory: Path, changes: Mapping[str, Any], *, finding: str = "", launch: Launch = run_change.launch
) -> AppliedCure:
    """Apply a cure to a run, in the way that loses least. Blocks for some seconds.

    Args:
        directory: The run's directory.
        changes: Fields of the plan, with their new values; a learning rate is the one that the optimizer gets.
        finding: Id of the finding, which is recorded with the change.
        launch: Gives a run to an engine; by default to a new process.

    Raises:
        AccelError: The cure cannot be applied; the message says what to do instead. The run has not changed.
    """
    if host_of_run(directory):
        return _on_host(directory, changes, finding)
    run, reason = _read(directory), f"advice {finding}" if finding else "advice"
    info, plan = run.info, run.info.require_plan("change the script or the tool that trains it")
    planned = with_planned_rate(changes, plan, run.replicas)
    _check(info, plan, planned)
    before = {name: getattr(plan, name) for name in changes}
    if (arguments := run.commands(changes)) is not None:
        return _by_command(directory, arguments, changes, before, (reason, CURE))
    if before.get("learning_rate", 0.0) is None and run.rate is not None:  # so that it can be set back
        before = with_planned_rate({**before, "learning_rate": run.rate}, plan, run.replicas)
    _check_continuation(info, planned)
    return _continued(info, planned, before, (reason, CURE), launch)


def undo(directory: Path, *, launch: Launch = run_change.launch) -> AppliedCure:
    """Take back the last cure of a run, by the inverse change; the weights stay as they are.

    Args:
        directory: The run's directory.
        launch: Gives a run to an engine; by default to a new process.

    Raises:
        AccelError: The run has no cure, or cannot be changed or continued.
    """
    if host_of_run(directory):
        return _on_host(directory, {}, "")
    run = _read(directory)
    info, change = run.info, next(reversed(run.history.cures), None)
    if change is None:
        raise RunError(f"run {info.id} has no cure that could be taken back")
    why = f"undo of {change.reason}", UNDO
    if change.is_rate:
        return _set_rate_back(info, change, why, launch)
    arguments = None if "learning_rate" in change.before else run.commands(change.before)
    if arguments is not None:
        return _by_command(directory, arguments, change.before, change.changes, why)
    _check_continuation(info, change.before)
    return _continued(info, change.before, change.changes, why, launch)


def _on_host(directory: Path, changes: Mapping[str, Any], finding: str) -> AppliedCure:
    """Let the host of a mirrored run apply a cure, or take the last one back."""
    done = host_function("runs_there:cure_there")(directory, changes, finding)
    return AppliedCure(Method(done.method), done.changes, done.before, done.text)


def _check_continuation(info: RunInfo, changes: Mapping[str, Any]) -> None:
    """Check that a run can be continued with changes, from the checkpoint that it has, or saves when it stops.

    Raises:
        RunError: A field cannot change within a run, there is no checkpoint to continue from, or the run is at a place;
            the message says what to do instead.
    """
    if fixed := sorted(set(changes) - CHANGEABLE):
        why = f"{', '.join(fixed)} cannot change within a run"
    elif info.status.live and not steps_taken(info.directory):
        raise RunError(f"run {info.id} has taken no step yet: apply the cure once it trains")
    elif info.status.live and info.study:
        why = f"run {info.id} is a trial of the search {info.study}, which starts the next trial once it stops"
    elif not info.status.live and info.status not in CONTINUABLE:
        why = f"run {info.id} is {info.status}, and cannot be continued"
    elif not info.status.live and not latest_checkpoint(info.directory):
        why = f"run {info.id} has no checkpoint to continue from"
    else:
        _check_is_at_no_place(info, changes)
        return
    command = for_a_new_run(changed_plan(info.plan, changes)).command() if info.plan else "the changed plan"
    raise RunError(f"{why}: start a new run with {command}")


def _check_is_at_no_place(info: RunInfo, changes: Mapping[str, Any]) -> None:
    """Refuse to continue a run here that a place trains, or has trained: this may be a login node."""
    if info.place is None:
        return
    run, place = reference(info.directory), info.place.place
    stop = f"{shell_command(['accel-tui', 'stop', run])}, then " if info.status.live else ""
    again = shell_command(["accel-tui", "continue", run, *(info.place.options or ("--on", place))])
    raise RunError(
        f"run {info.id} is at {place}, and this change would continue it on this machine: continue it there, with "
        f"{stop}{again} {options_text(changes)}"
    )


def _check(info: RunInfo, plan: Plan, changes: Mapping[str, Any]) -> None:
    """Check that a run can have changes of its plan, before the run is changed.

    Raises:
        AccelError: The changes are empty or unknown, change nothing, or do not fit the machine, the data or the model.
    """
    if not changes:
        raise RunError("this cure changes no field of the plan")
    if unknown := [name for name in changes if name not in SPECS]:
        raise RunError(f"a plan has no field {unknown[0]}")
    changed = changed_plan(plan, changes)
    may_differ = info.status.live and "learning_rate" in changes  # a command may have set it since
    if changed == plan and not may_differ:
        raise RunError(f"run {info.id} has these settings already")
    resolved_plan.resolve_to_train(changed, detect().devices, chosen=changes)


def _by_command(
    directory: Path, arguments: Mapping[str, float], changes: Mapping[str, Any], before: Mapping[str, Any], why: Why
) -> AppliedCure:
    answers = [run_change.send_to_run(directory, name, argument, *why) for name, argument in arguments.items()]
    return AppliedCure(Method.COMMAND, changes, before, f"run {directory.name}: {'; '.join(answers)}")


def _continued(
    info: RunInfo, changes: Mapping[str, Any], before: Mapping[str, Any], why: Why, launch: Launch
) -> AppliedCure:
    directory, was_live = info.directory, info.status.live
    with run_change.stopped(directory, launch):
        step = latest_checkpoint(directory)
        process = run_change.continue_changed(directory, changes, before, *why, launch)
    done = "stopped with a checkpoint and continued" if was_live else "continued"
    text = f"run {info.id} was {done} from step {step:,} with {options_text(changes)}"
    return AppliedCure(Method.CONTINUED, changes, before, text, process)


def _set_rate_back(info: RunInfo, change: CureChange, why: Why, launch: Launch) -> AppliedCure:
    """Set the learning rate that an optimizer had before a command; a run that has ended is continued for it."""
    directory, rate = info.directory, float(change.before["learning_rate"])
    if info.status.live:
        return _by_command(directory, {"learning_rate": rate}, change.before, change.changes, why)
    _check_is_at_no_place(info, change.before)
    prepare_continuation(directory)
    process = launch(directory)
    reason, purpose = why
    send_command(directory, "learning_rate", rate, reason=reason, purpose=purpose)
    text = f"run {info.id} was continued, with the learning rate {rate:g}"
    return AppliedCure(Method.CONTINUED, change.before, change.changes, text, process)
