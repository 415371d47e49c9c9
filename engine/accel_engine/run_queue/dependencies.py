"""The runs that entries of the queue wait for, and the end of those that were cancelled meanwhile."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from accel_engine import clock
from accel_engine.errors import RunError, UsageError
from accel_engine.events import Outcome, RunEnded, RunStarted
from accel_engine.run.directory.run_paths import runs_directory
from accel_engine.run.engine.status import Status, read_info
from accel_engine.run.store.database import DATABASE, reading, writing
from accel_engine.run.store.stored_events import last_event
from accel_engine.run.writing.writer import RunWriter


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why an entry waits for other runs."""

    reason: str = ""
    """Why it waits, in words; empty if it does not."""
    is_blocked: bool = False
    """Whether it waits until a user does something."""


def run_status(run: str) -> Status | None:
    """The status of a run; ``None`` if it is deleted.

    Raises:
        RunError: It cannot be read.
    """
    directory = runs_directory() / run
    if not (directory / DATABASE).is_file():
        return None
    with reading(directory) as database:
        return read_info(database).status


def waits_for(after: Iterable[str]) -> Waiting:
    """Why an entry waits for runs: for those that are live, unless one will not finish."""
    live = []
    for run in after:
        try:
            found = run_status(run)
        except RunError as error:
            return Waiting(str(error), is_blocked=True)
        if found is None:
            return Waiting(f"run {run} was deleted", is_blocked=True)
        if found.live:
            live.append(run)
        elif found is not Status.FINISHED:
            return Waiting(f"run {run} {_ENDS[found]}", is_blocked=True)
    return Waiting(f"after {', '.join(live)}") if live else Waiting()


def will_finish(run: str) -> bool:
    """Whether a run has finished, or may yet."""
    return not waits_for([run]).is_blocked


def check_dependencies(run: str, after: Sequence[str], known: Mapping[str, Sequence[str]]) -> None:
    """Check the runs that a new entry shall wait for.

    Args:
        run: Its id.
        after: Ids of the runs.
        known: What the other entries wait for, by their ids.

    Raises:
        UsageError: There is no such run, or they would wait for each other.
        RunError: One cannot be read.
    """
    for each in after:
        if each == run:
            raise UsageError(f"run {run} cannot wait for itself")
        if run_status(each) is None:
            raise UsageError(f"there is no run {each} to wait for in {runs_directory()}")
        if path := _path(each, run, known, (run,)):
            raise UsageError(f"these runs would wait for each other: {' after '.join((*path, run))}")


_ENDS = {Status.FAILED: "failed", Status.STOPPED: "was stopped", Status.LOST: "was lost"}


def _path(run: str, goal: str, known: Mapping[str, Sequence[str]], so_far: tuple[str, ...]) -> tuple[str, ...] | None:
    """The entries from one to another that it waits for; ``None`` if it does not."""
    if run in so_far:
        return None
    for each in known.get(run, ()):
        if each == goal:
            return (*so_far, run)
        if path := _path(each, goal, known, (*so_far, run)):
            return path
    return None


def end_cancelled(directory: Path, reason: str, outcome: Outcome = Outcome.STOPPED) -> None:
    """End a queued run: a new one becomes ``stopped``, a reopened one is again as it had ended.

    A run that is not queued any more, or deleted, is left as it is.

    Args:
        directory: The run's directory.
        reason: Why it ends.
        outcome: How a new one ends.

    Raises:
        RunError: It cannot be written.
    """
    if not (directory / DATABASE).is_file():
        return
    with writing(directory) as database:
        if read_info(database, watched=False).status is not Status.QUEUED:
            return
        if last_event(database, RunStarted):
            database.set_meta(queued=None)
            return
    writer = RunWriter(directory)
    try:
        writer.begin()
    except RunError:
        writer.close()
        with reading(directory) as database:
            if read_info(database).status is Status.QUEUED:
                raise
        return  # another process ends it
    writer.end(RunEnded(time=clock.now(), outcome=outcome, steps=0, epochs=0, seconds=0.0, reason=reason))
