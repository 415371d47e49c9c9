"""Applies a cure to a run: by command to a live one, else by continuing it with a changed plan, else in a new run.

A cure that makes a run clearly worse is taken back: see :mod:`accel_engine.launch.settle_cure`.
"""

import subprocess
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from accel_engine.devices import detect
from accel_engine.errors import RunError
from accel_engine.events import LearningRateChanged, ModelBuilt
from accel_engine.launch import run_change
from accel_engine.launch.cure_kinds import Quantity
from accel_engine.launch.live_changes import command_argument
from accel_engine.launch.paused_run import read_run
from accel_engine.launch.run_change import Launch
from accel_engine.launch.start_run import for_a_new_run, prepare_run
from accel_engine.plan import SPECS, Plan, resolved_plan
from accel_engine.plan.field_needs import without_ignored
from accel_engine.run import RunInfo, RunReader, Status
from accel_engine.run.plan_changes import CHANGEABLE
from accel_engine.run.run_paths import latest_checkpoint, reference


class Way(StrEnum):
    """How a cure was applied."""

    COMMAND = "by command"
    CONTINUED = "by continuing the run"
    NEW_RUN = "in a new run"


@dataclass(frozen=True, slots=True)
class AppliedCure:
    """A cure that was applied.

    Attributes:
        directory: The run that has it now.
        source: The run that it was applied to; another one if ``directory`` is a new run.
        way: How.
        changes: The changed fields, with their new values.
        before: The same fields, with the values before.
        step: The first step with it, counted from 0.
        text: What was done, in words.
        was_live: Whether the source was training.
        process: The engine's process, if a new one was started.
        quantity: What it is for; ``None`` if that follows from the changed fields.
    """

    directory: Path
    source: Path
    way: Way
    changes: Mapping[str, Any]
    before: Mapping[str, Any]
    step: int
    text: str
    was_live: bool
    process: "subprocess.Popen[str] | None" = field(default=None, repr=False)
    quantity: Quantity | None = None


def apply_cure(directory: Path, changes: Mapping[str, Any]) -> str:
    """Apply a cure; see :func:`apply`.

    Returns:
        What was done, in words.
    """
    return apply(directory, changes).text


def apply(
    directory: Path, changes: Mapping[str, Any], *, finding: str = "", launch: Launch = run_change.launch
) -> AppliedCure:
    """Apply a cure to a run, in the way that loses least. Blocks for some seconds.

    Args:
        directory: The run's directory.
        changes: Fields of the plan, with their new values.
        finding: Id of the finding, which is recorded with the change.
        launch: Gives a run to an engine; by default to a new process.

    Raises:
        AccelError: It cannot be applied, and why; the run is as it was.
    """
    info = read_run(directory)
    _check(info, changes)
    assert info.plan is not None  # noqa: S101 (it was just checked)
    before = {name: getattr(info.plan, name) for name in changes}
    reason = f"advice {finding}" if finding else "advice"
    arguments = command_arguments(directory, info, changes)
    if info.status.live and arguments is not None:
        return _by_command(directory, changes, before, arguments, reason)
    if info.status.live and not _steps(directory):
        raise RunError(f"run {info.id} has taken no step yet: apply the cure once it trains")
    is_continuable = info.status.live or info.status in (Status.STOPPED, Status.FAILED, Status.LOST)
    can_continue = CHANGEABLE.issuperset(changes) and is_continuable
    if can_continue and (info.status.live or latest_checkpoint(directory)):
        return _continued(info, changes, before, reason, launch)
    return _in_new_run(info, changes, before, reason, launch)


def _check(info: RunInfo, changes: Mapping[str, Any]) -> None:
    """Check that a run can have changes, before anything is done to it.

    Raises:
        AccelError: It cannot.
    """
    if not info.has_engine:
        raise RunError(f"run {info.id} was {info.made}: change the script or the tool that trains it")
    if info.plan is None:
        raise RunError(f"the plan of run {info.id} cannot be read on this machine")
    if not changes:
        raise RunError("this cure changes no field of the plan")
    if unknown := [name for name in changes if name not in SPECS]:
        raise RunError(f"a plan has no field {unknown[0]}")
    changed = _changed(info.plan, changes)
    may_differ = info.status.live and "learning_rate" in changes  # a command may have set it since
    if changed == info.plan and not may_differ:
        raise RunError(f"run {info.id} has these settings already")
    resolved_plan.check(changed, detect().devices, chosen=changes)


def _changed(plan: Plan, changes: Mapping[str, Any]) -> Plan:
    return Plan.from_mapping(without_ignored({**plan.to_mapping(), **changes}, wanted=changes))


def command_arguments(directory: Path, info: RunInfo, changes: Mapping[str, Any]) -> dict[str, float] | None:
    """What the commands take that change all of the fields; ``None`` if commands cannot."""
    assert info.plan is not None  # noqa: S101 (it was checked)
    if "learning_rate" in changes and info.plan.schedule not in ("auto", "constant"):
        return None  # the rate follows the schedule
    if "validation_every" in changes and info.plan.validation != "epoch":
        return None
    with closing(RunReader(directory, steps=False)) as reader:
        built = [event for _, event in reader.events(0, ModelBuilt) if isinstance(event, ModelBuilt)]
    steps = (built[-1].steps_per_epoch if built else 0) or 0
    found = {name: command_argument(name, value, steps) for name, value in changes.items()}
    arguments = {name: argument for name, argument in found.items() if argument is not None}
    return arguments if len(arguments) == len(changes) else None


def _by_command(
    directory: Path,
    changes: Mapping[str, Any],
    before: Mapping[str, Any],
    arguments: Mapping[str, float],
    reason: str,
) -> AppliedCure:
    """Apply a cure to a live run by commands; with a checkpoint before a change of what it learns."""
    answers, done = [], dict[str, Any]()
    step = _steps(directory)
    if "learning_rate" in changes:
        before = {**before, "learning_rate": _current_rate(directory)}
        if step:
            run_change.send(directory, "checkpoint", reason=reason)
            step = latest_checkpoint(directory)
    for name, argument in arguments.items():
        try:
            answers.append(run_change.send(directory, name, argument, reason))
        except RunError:
            _undo(directory, done, before)
            raise
        done[name] = argument
    text = f"run {directory.name}: {'; '.join(answers)}"
    return AppliedCure(directory, directory, Way.COMMAND, changes, before, step, text, was_live=True)


def _undo(directory: Path, done: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    """Give the fields that commands have changed their values before."""
    info = read_run(directory)
    arguments = command_arguments(directory, info, {name: before[name] for name in done}) or {}
    for name, argument in arguments.items():
        run_change.send(directory, name, argument)


def _continued(
    info: RunInfo, changes: Mapping[str, Any], before: Mapping[str, Any], reason: str, launch: Launch
) -> AppliedCure:
    directory, was_live = info.directory, info.status.live
    if was_live:
        run_change.stop(directory)
    if not (step := latest_checkpoint(directory)):  # its weights were not finite
        return _in_new_run(read_run(directory), changes, before, reason, launch)
    process = run_change.continue_changed(directory, changes, before, reason, launch, was_live=was_live)
    done = "stopped with a checkpoint and continued" if was_live else "continued"
    text = f"run {info.id} was {done} from step {step:,} with {described(changes)}"
    return AppliedCure(directory, directory, Way.CONTINUED, changes, before, step, text, was_live, process)


def _in_new_run(
    info: RunInfo, changes: Mapping[str, Any], before: Mapping[str, Any], reason: str, launch: Launch
) -> AppliedCure:
    assert info.plan is not None  # noqa: S101 (it was checked)
    plan = for_a_new_run(_changed(info.plan, changes))
    was_live = info.status.live
    if was_live:
        resolved_plan.check(plan, detect().devices)  # before the run is stopped for it
        run_change.stop(info.directory)
    new = prepare_run(plan)
    run_change.record_change(new, 0, changes, before, f"{reason}, from run {info.id}")
    process = launch(new)
    fixed = sorted(set(changes) - CHANGEABLE)
    why = f"{', '.join(fixed)} cannot change within a run" if fixed else f"run {info.id} cannot be continued"
    text = f"new run {new.name} with {described(changes)}, as {why}"
    if was_live:
        text += f"; run {info.id} was stopped with a checkpoint: accel-tui continue {reference(info.directory)}"
    return AppliedCure(new, info.directory, Way.NEW_RUN, changes, before, 0, text, was_live, process)


def described(changes: Mapping[str, Any]) -> str:
    """Changes as options of the command line."""
    options = Plan().to_mapping()
    return " ".join(
        f"--{name.replace('_', '-')} {','.join(value) if isinstance(value, (tuple, list)) else value}"
        for name, value in changes.items()
        if name in options
    )


def _steps(directory: Path) -> int:
    """Steps that a run has taken."""
    with closing(RunReader(directory)) as reader:
        new = reader.new_steps()
    return new.stop if new else 0


def _current_rate(directory: Path) -> float | None:
    """The learning rate that a run has now; ``None`` if it recorded none."""
    with closing(RunReader(directory, steps=False)) as reader:
        found = [event for _, event in reader.events(0, LearningRateChanged)]
    return found[-1].learning_rate if found and isinstance(found[-1], LearningRateChanged) else None
