"""The runs that entries of the queue wait for."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from accel_engine.errors import RunError, UsageError
from accel_engine.run.directory.run_paths import runs_directory
from accel_engine.run.engine.status import Status, read_info
from accel_engine.run.store.database import DATABASE, reading


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why an entry waits for other runs."""

    reason: str = ""
    """Why it waits, in words; empty if it does not."""
    is_blocked: bool = False
    """Whether it waits until a user does something."""


def run_status(directory: Path) -> Status | None:
    """The status of a run; ``None`` if it is deleted.

    Raises:
        RunError: The run cannot be read.
    """
    if not (directory / DATABASE).is_file():
        return None
    with reading(directory) as database:
        return read_info(database).status


def waits_for(after: Iterable[str]) -> Waiting:
    """Why an entry waits for runs: for those that are live, unless one will not finish."""
    live = []
    for run in after:
        try:
            found = run_status(runs_directory() / run)
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
        RunError: A run cannot be read.
    """
    for each in after:
        if each == run:
            raise UsageError(f"run {run} cannot wait for itself")
        if run_status(runs_directory() / each) is None:
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
