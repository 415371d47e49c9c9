"""Applies a cure to a run: by command to a live one, else by continuing it with a changed plan, else in a new run.

A cure that makes a run clearly worse is taken back: see :mod:`accel_engine.advice.cures.settle_cure`.
"""

import subprocess
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from accel_engine.advice.cures.cure_kinds import Quantity, judged_by, trains_on_cpu
from accel_engine.devices import detect
from accel_engine.errors import RunError
from accel_engine.events import CommandAnswered, DevicesFound, LearningRateChanged, ModelBuilt
from accel_engine.plan import SPECS, resolved_plan
from accel_engine.plan.changed_plan import changed_plan, options_text
from accel_engine.plan.live_changes import command_arguments
from accel_engine.plan.scaled_rate import with_planned_rate
from accel_engine.process import run_change
from accel_engine.process.paused_run import read_run
from accel_engine.process.run_change import Launch, steps_taken
from accel_engine.process.start_run import for_a_new_run, prepare_run
from accel_engine.run import RunInfo, RunReader, Status
from accel_engine.run.directory.run_paths import latest_checkpoint, reference
from accel_engine.run.runs.plan_changes import CHANGEABLE


class Method(StrEnum):
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
        method: How.
        changes: The changed fields, with their new values.
        before: The same fields, with the plan's values before.
        step: The first step with it, counted from 0.
        checkpoint: Step of the last checkpoint without it; 0 if there is none.
        text: What was done, in words.
        was_live: Whether the source was training.
        had_failed: Whether the source had failed.
        judged_by: What tells whether the run does worse with it; ``None`` if only a failure does.
        rate: The optimizer's learning rate before, if a command has changed it.
        process: The engine's process, if a new one was started.
    """

    directory: Path
    source: Path
    method: Method
    changes: Mapping[str, Any]
    before: Mapping[str, Any]
    step: int
    text: str
    was_live: bool
    had_failed: bool = False
    judged_by: Quantity | None = None
    rate: float | None = None
    checkpoint: int = 0
    process: "subprocess.Popen[str] | None" = field(default=None, repr=False)


def apply(
    directory: Path,
    changes: Mapping[str, Any],
    *,
    finding: str = "",
    purpose: Quantity | None = None,
    launch: Launch = run_change.launch,
) -> AppliedCure:
    """Apply a cure to a run, in the way that loses least. Blocks for some seconds.

    Args:
        directory: The run's directory.
        changes: Fields of the plan, with their new values; a learning rate is the one that the optimizer gets.
        finding: Id of the finding, which is recorded with the change.
        purpose: What the finding is about; by default it follows from the fields.
        launch: Gives a run to an engine; by default to a new process.

    Raises:
        AccelError: It cannot be applied, and why; the run is as it was.
    """
    info, built, on_cpu = _recorded(directory)
    planned = with_planned_rate(changes, info.plan, built.replicas if built else 1) if info.plan else dict(changes)
    _check(info, planned)
    assert info.plan is not None  # noqa: S101 (it was just checked)
    before = {name: getattr(info.plan, name) for name in changes}
    reason = f"advice {finding}" if finding else "advice"
    arguments = command_arguments(info.plan, built.steps_per_epoch if built else 0, changes)
    if info.status.live and arguments is not None:
        cure = _by_command(directory, changes, before, arguments, reason)
    elif info.status.live and not steps_taken(directory):
        raise RunError(f"run {info.id} has taken no step yet: apply the cure once it trains")
    elif _can_continue(info, changes):
        cure = _continued(info, planned, before, reason, launch)
    else:
        cure = _in_new_run(info, planned, before, reason, launch)
    judge = judged_by(changes, on_cpu=on_cpu, purpose=purpose)
    return replace(cure, had_failed=info.status is Status.FAILED, judged_by=judge)


def _recorded(directory: Path) -> tuple[RunInfo, ModelBuilt | None, bool]:
    """A run, its model, and whether CPUs train it."""
    with closing(RunReader(directory)) as reader:
        info, events = reader.info(), [event for _, event in reader.events(0, ModelBuilt, DevicesFound)]
    built = [event for event in events if isinstance(event, ModelBuilt)]
    found = [event for event in events if isinstance(event, DevicesFound)]
    return info, built[-1] if built else None, trains_on_cpu(found)


def _can_continue(info: RunInfo, changes: Mapping[str, Any]) -> bool:
    if not CHANGEABLE.issuperset(changes):
        return False
    can_end = info.status in (Status.STOPPED, Status.FAILED, Status.LOST)
    return info.status.live or (can_end and bool(latest_checkpoint(info.directory)))


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
    changed = changed_plan(info.plan, changes)
    may_differ = info.status.live and "learning_rate" in changes  # a command may have set it since
    if changed == info.plan and not may_differ:
        raise RunError(f"run {info.id} has these settings already")
    resolved_plan.check(changed, detect().devices, chosen=changes)


def _by_command(
    directory: Path,
    changes: Mapping[str, Any],
    before: Mapping[str, Any],
    arguments: Mapping[str, float],
    reason: str,
) -> AppliedCure:
    """Apply a cure to a live run by commands; with a checkpoint before a change of what it learns."""
    answers, done = [], dict[str, Any]()
    rate, checkpoint = None, 0
    if "learning_rate" in changes:
        rate = _current_rate(directory)
        if steps_taken(directory):
            run_change.send(directory, "checkpoint", reason=reason)
            checkpoint = latest_checkpoint(directory)
    for name, argument in arguments.items():
        try:
            answers.append(run_change.send(directory, name, argument, reason))
        except RunError:
            _undo(directory, {name: rate if name == "learning_rate" else before[name] for name in done})
            raise
        done[name] = argument
    text = f"run {directory.name}: {'; '.join(answers)}"
    return AppliedCure(
        directory,
        directory,
        Method.COMMAND,
        changes,
        before,
        _answered_at(directory, "learning_rate" if "learning_rate" in arguments else list(arguments)[-1]),
        text,
        was_live=True,
        rate=rate,
        checkpoint=checkpoint,
    )


def _answered_at(directory: Path, command: str) -> int:
    """Steps that a run had taken when it last obeyed a command."""
    with closing(RunReader(directory, steps=False)) as reader:
        answers = [event for _, event in reader.events(0, CommandAnswered) if isinstance(event, CommandAnswered)]
    return next((each.step for each in reversed(answers) if each.command == command), steps_taken(directory))


def _undo(directory: Path, before: Mapping[str, Any]) -> None:
    """Give the fields that commands have changed their values before."""
    info, built, _ = _recorded(directory)
    assert info.plan is not None  # noqa: S101 (it was checked)
    arguments = command_arguments(info.plan, built.steps_per_epoch if built else 0, before) or {}
    for name, argument in arguments.items():
        run_change.send(directory, name, argument)


def _continued(
    info: RunInfo, changes: Mapping[str, Any], before: Mapping[str, Any], reason: str, launch: Launch
) -> AppliedCure:
    directory, was_live = info.directory, info.status.live
    with run_change.stopped(directory, launch):
        if not (step := latest_checkpoint(directory)):  # its weights were not finite
            return _in_new_run(read_run(directory), changes, before, reason, launch)
        process = run_change.continue_changed(directory, changes, before, reason, launch)
    done = "stopped with a checkpoint and continued" if was_live else "continued"
    text = f"run {info.id} was {done} from step {step:,} with {options_text(changes)}"
    return AppliedCure(
        directory,
        directory,
        Method.CONTINUED,
        changes,
        before,
        step,
        text,
        was_live=was_live,
        checkpoint=step,
        process=process,
    )


def _in_new_run(
    info: RunInfo, changes: Mapping[str, Any], before: Mapping[str, Any], reason: str, launch: Launch
) -> AppliedCure:
    assert info.plan is not None  # noqa: S101 (it was checked)
    plan = for_a_new_run(changed_plan(info.plan, changes))
    was_live = info.status.live
    if was_live:
        resolved_plan.check(plan, detect().devices)  # before the run is stopped for it
    with run_change.stopped(info.directory, launch):
        new = prepare_run(plan)
        run_change.record_change(new, 0, changes, before, f"{reason}, from run {info.id}")
        process = launch(new)
    fixed = sorted(set(changes) - CHANGEABLE)
    why = f"{', '.join(fixed)} cannot change within a run" if fixed else f"run {info.id} cannot be continued"
    text = f"new run {new.name} with {options_text(changes)}, as {why}"
    if was_live:
        text += f"; run {info.id} was stopped with a checkpoint: accel-tui continue {reference(info.directory)}"
    return AppliedCure(
        new, info.directory, Method.NEW_RUN, changes, before, 0, text, was_live=was_live, process=process
    )


def _current_rate(directory: Path) -> float | None:
    """The learning rate that a run has now; ``None`` if it recorded none."""
    with closing(RunReader(directory, steps=False)) as reader:
        found = [event for _, event in reader.events(0, LearningRateChanged)]
    return found[-1].learning_rate if found and isinstance(found[-1], LearningRateChanged) else None
