"""Commands to a live run from another process: it is paused for a while, or stopped and continued with changes."""

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from accel_engine import clock
from accel_engine.errors import RunError
from accel_engine.events import PlanChanged
from accel_engine.process.start_run import prepare_continuation, start_on_engine
from accel_engine.run import RunReader, RunWriter, Status, read_run, send_command
from accel_engine.run.directory.lock import WriterLock
from accel_engine.run.directory.run_paths import check_is_here, latest_checkpoint
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
    return start_on_engine(directory, None)


def send_to_run(directory: Path, name: str, argument: float | None = None, reason: str = "", purpose: str = "") -> str:
    """Send a command to a live run and wait for the answer.

    Raises:
        RunError: The command was not carried out; the message says why.
    """
    answer = _answer(directory, send_command(directory, name, argument, reason=reason, purpose=purpose))
    if answer is None:
        raise RunError(f"run {directory.name} did not answer to {name.replace('_', ' ')}")
    if not answer[0]:
        raise RunError(f"run {directory.name}: {answer[1]}")
    return answer[1]


def _answer(directory: Path, number: int, should_stop: Callable[[], bool] = lambda: False) -> tuple[bool, str] | None:
    """The answer to a command; ``None`` if there is none in time, and the command is withdrawn."""
    deadline = time.monotonic() + ANSWER_SECONDS
    while (answer := read_answer(directory, number)) is None:
        if should_stop() or time.monotonic() > deadline or not read_run(directory).status.live:
            return None if withdraw(directory, number) else read_answer(directory, number)
        time.sleep(INTERVAL)
    return answer


class PauseNote(NamedTuple):
    """Notes on a run that is paused while something else is measured; both are empty for a run that is not live."""

    now: str = ""
    """The note while the other thing is measured."""
    after: str = ""
    """The note afterwards."""


BESIDE = PauseNote(
    "the run trains beside it, as it could not be paused", "the run trained beside it, as it could not be paused"
)


@contextmanager
def paused(directory: Path, longest: float, should_stop: Callable[[], bool] = lambda: False) -> Iterator[PauseNote]:
    """Pause a run for a block.

    One that somebody else has paused, before or meanwhile, stays paused. If this program is killed, the engine
    resumes the run by itself after ``longest`` seconds.

    Args:
        directory: The run's directory.
        longest: Seconds that the block takes at most.
        should_stop: Whether to give up waiting.
    """
    info = read_run(directory)
    if info.status is Status.PAUSED:
        yield PauseNote("the run is paused", "the run was paused")
        return
    if not info.status.live:
        yield PauseNote()
        return
    number = _pause(directory, longest, should_stop)
    try:
        yield PauseNote("the run is paused meanwhile", "the run was paused meanwhile") if number else BESIDE
    finally:
        if number:
            with suppress(RunError):  # it has ended meanwhile, or its time is over
                send_command(directory, "resume", float(number))


def _pause(directory: Path, longest: float, should_stop: Callable[[], bool]) -> int:
    """Ask the engine to pause; returns the command's id, 0 if it has not."""
    try:
        number = send_command(directory, "pause", longest)
    except RunError:
        return 0
    answer = _answer(directory, number, should_stop)
    return number if answer is not None and answer[0] else 0


def steps_taken(directory: Path) -> int:
    """Steps that a run has taken."""
    with closing(RunReader(directory)) as reader:
        new = reader.new_steps()
    return new.stop if new else 0


@contextmanager
def stopped(directory: Path, launch: Launch = launch) -> Iterator[None]:
    """Stop a live run with a checkpoint for a block that continues it; one that has ended stays so.

    After an error, or Ctrl-C, the run trains on as before: the stop is withdrawn, or the run is continued.

    Args:
        directory: The run's directory.
        launch: Gives the run to an engine.

    Raises:
        RunError: The run does not stop.
    """
    if not read_run(directory).status.live:
        yield
        return
    number = send_command(directory, "stop")
    try:
        _wait_for_end(directory)
        yield
    except BaseException:
        _train_on(directory, number, launch)
        raise


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
    purpose: str,
    launch: Launch = launch,
) -> "subprocess.Popen[str]":
    """Continue an ended run with a changed plan, and record what changed.

    Args:
        directory: The run's directory.
        changes: Fields of the plan, with their new values.
        before: The same fields, with the values before.
        reason: Why they change.
        purpose: As in :class:`~accel_engine.events.PlanChanged`.
        launch: Gives the run to an engine.

    Raises:
        AccelError: The run cannot be continued with the changes; the message says why.
    """
    check_is_here(directory, "change it there")
    prepare_continuation(directory, changes)
    try:
        _record_change(
            directory,
            PlanChanged(
                time=clock.now(),
                step=latest_checkpoint(directory),
                changes=dict(changes),
                before=dict(before),
                reason=reason,
                purpose=purpose,
            ),
        )
    finally:  # it waits for an engine already
        process = launch(directory)
    return process


def _record_change(directory: Path, event: PlanChanged) -> None:
    """Write what changed to a run that no engine writes.

    Raises:
        RunError: The run cannot be written, or an engine writes it.
    """
    try:
        with WriterLock(directory), closing(RunWriter(directory)) as writer:
            writer.write_event(event)
    except BlockingIOError as error:
        raise RunError(f"run {directory.name} is being trained") from error
