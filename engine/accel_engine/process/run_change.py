"""Changes a live run's plan by stopping it with a checkpoint, and continuing it with the changed plan."""

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

from accel_engine import clock
from accel_engine.errors import RunError
from accel_engine.events import PlanChanged
from accel_engine.process.paused_run import read_run
from accel_engine.process.start_run import hand_over, prepare_continuation
from accel_engine.run import RunReader, RunWriter, Status, request
from accel_engine.run.directory.lock import WriterLock
from accel_engine.run.directory.run_paths import latest_checkpoint
from accel_engine.run.engine.commands import read_answer, withdraw

STOP_SECONDS = 120.0
"""Seconds to wait until a run has stopped: it validates and saves first, perhaps."""

TRAINS_ON_SECONDS = 30.0
"""Seconds to wait until a run has taken a step after a stop was withdrawn, or has stopped all the same."""

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


def steps_taken(directory: Path) -> int:
    """Steps that a run has taken."""
    with closing(RunReader(directory)) as reader:
        new = reader.new_steps()
    return new.stop if new else 0


@contextmanager
def stopped(directory: Path, launch: Launch = launch, reason: str = "") -> Iterator[None]:
    """Stop a live run with a checkpoint for a block that continues it; one that has ended stays so.

    After an error, or Ctrl-C, the run trains on as before: the stop is withdrawn, or the run is continued.

    Args:
        directory: The run's directory.
        launch: Gives the run to an engine.
        reason: Why it is stopped, which is recorded.

    Raises:
        RunError: It does not stop.
    """
    if not read_run(directory).status.live:
        yield
        return
    number = request(directory, "stop", reason=reason)
    try:
        _wait_for_end(directory)
        yield
    except BaseException:
        _train_on(directory, number, launch)
        raise


def stop(directory: Path, reason: str = "") -> None:
    """Stop a live run with a checkpoint, and wait until it has; does nothing if it has ended.

    Args:
        directory: The run's directory.
        reason: Why, which is recorded.

    Raises:
        RunError: It does not stop, and the stop is withdrawn.
    """
    with stopped(directory, reason=reason):
        pass


def _wait_for_end(directory: Path) -> None:
    deadline = time.monotonic() + STOP_SECONDS
    while read_run(directory).status.live:
        if time.monotonic() > deadline:
            raise RunError(f"run {directory.name} has not stopped in {STOP_SECONDS:.0f} s; the stop is withdrawn")
        time.sleep(INTERVAL)


def _train_on(directory: Path, number: int, launch: Launch) -> None:
    """Withdraw a stop; continue a run that has stopped, or does so at this moment."""
    withdrawn = False
    with suppress(RunError):  # else it stops, and is continued
        withdrawn = bool(number) and withdraw(directory, number)
    first, deadline = steps_taken(directory), time.monotonic() + TRAINS_ON_SECONDS
    while read_run(directory).status.live and time.monotonic() < deadline:
        if withdrawn and steps_taken(directory) > first:
            return
        time.sleep(INTERVAL)
    if read_run(directory).status is Status.STOPPED:
        prepare_continuation(directory)
        launch(directory)


def continue_changed(
    directory: Path,
    changes: Mapping[str, Any],
    before: Mapping[str, Any],
    reason: str,
    launch: Launch = launch,
) -> "subprocess.Popen[str]":
    """Continue an ended run with a changed plan, and record what changed.

    Args:
        directory: The run's directory.
        changes: Fields of the plan, with their new values.
        before: The same fields, with the values before.
        reason: Why they change.
        launch: Gives the run to an engine.

    Raises:
        AccelError: It cannot be continued with the changes; why.
    """
    prepare_continuation(directory, changes)
    try:
        record_change(directory, latest_checkpoint(directory), changes, before, reason)
    finally:  # it waits for an engine already
        process = launch(directory)
    return process


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
