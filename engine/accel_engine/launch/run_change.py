"""Changes a live run's plan by stopping it with a checkpoint, and continuing it with the changed plan."""

import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

from accel_engine import clock
from accel_engine.errors import AccelError, RunError
from accel_engine.events import PlanChanged
from accel_engine.launch.paused_run import read_run
from accel_engine.launch.start_run import hand_over, prepare_continuation
from accel_engine.run import RunWriter, checkpoint_files, request
from accel_engine.run.commands import read_answer, withdraw
from accel_engine.run.lock import WriterLock
from accel_engine.run.run_paths import CHECKPOINTS, checkpoint_steps, latest_checkpoint

STOP_SECONDS = 120.0
"""Seconds to wait until a run has stopped: it validates and saves first, perhaps."""

ANSWER_SECONDS = 30.0
"""Seconds to wait for an answer to a command."""

INTERVAL = 0.05

Launch: TypeAlias = "Callable[[Path], subprocess.Popen[str]]"
"""Gives a prepared run to an engine; returns its process."""


def launch(directory: Path) -> "subprocess.Popen[str]":
    """Give a prepared run to a new engine process."""
    return hand_over(directory, None)


def send(directory: Path, name: str, argument: float | None = None, reason: str = "") -> str:
    """Send a command to a live run and wait for the answer.

    Raises:
        RunError: It was not carried out, and why.
    """
    number = request(directory, name, argument, reason=reason)
    deadline = time.monotonic() + ANSWER_SECONDS
    while (answer := read_answer(directory, number)) is None:
        if time.monotonic() > deadline or not read_run(directory).status.live:
            if withdraw(directory, number):
                raise RunError(f"run {directory.name} did not answer to {name.replace('_', ' ')}")
            break
        time.sleep(INTERVAL)
    answer = answer or read_answer(directory, number)
    if answer is None or not answer[0]:
        raise RunError(f"run {directory.name}: {answer[1] if answer else 'no answer'}")
    return answer[1]


def stop(directory: Path, *, now: bool = False) -> None:
    """Stop a live run with a checkpoint, or at once, and wait until it has; does nothing if it has ended.

    Raises:
        RunError: It does not stop.
    """
    if not read_run(directory).status.live:
        return
    request(directory, "stop_now" if now else "stop")
    deadline = time.monotonic() + STOP_SECONDS
    while read_run(directory).status.live:
        if time.monotonic() > deadline:
            raise RunError(f"run {directory.name} has not stopped in {STOP_SECONDS:.0f} s")
        time.sleep(INTERVAL)


def continue_changed(
    directory: Path,
    changes: Mapping[str, Any],
    before: Mapping[str, Any],
    reason: str,
    launch: Launch = launch,
    *,
    was_live: bool = False,
) -> "subprocess.Popen[str]":
    """Continue an ended run with a changed plan, and record what changed.

    Args:
        directory: The run's directory.
        changes: Fields of the plan, with their new values.
        before: The same fields, with the values before.
        reason: Why they change.
        launch: Gives the run to an engine.
        was_live: Whether it was stopped for this, so that it continues without the changes if they are impossible.

    Raises:
        AccelError: It cannot be continued with the changes; why.
    """
    try:
        prepare_continuation(directory, changes)
    except AccelError:
        if was_live:
            prepare_continuation(directory)
            launch(directory)
        raise
    record_change(directory, latest_checkpoint(directory), changes, before, reason)
    return launch(directory)


def record_change(
    directory: Path, step: int, changes: Mapping[str, Any], before: Mapping[str, Any], reason: str
) -> None:
    """Write what changed to a run that no engine writes.

    Raises:
        RunError: It cannot be written, or an engine writes it.
    """
    event = PlanChanged(time=clock.now(), step=step, changes=dict(changes), before=dict(before), reason=reason)
    try:
        with WriterLock(directory), closing(RunWriter(directory)) as writer:
            writer.write_event(event)
    except BlockingIOError as error:
        raise RunError(f"run {directory.name} is being trained") from error


def return_to(directory: Path, step: int) -> int:
    """Delete the checkpoints after a step of an ended run, if it has one of that step; returns the last one left.

    Raises:
        RunError: An engine writes it, or they cannot be deleted.
    """
    if step in checkpoint_steps(directory):
        try:
            with WriterLock(directory):
                checkpoint_files.delete_after(directory / CHECKPOINTS, step)
        except BlockingIOError as error:
            raise RunError(f"run {directory.name} is being trained") from error
        except OSError as error:
            raise RunError(f"the checkpoints of run {directory.name} cannot be deleted: {error.strerror}") from error
    return latest_checkpoint(directory)
