"""``accel-tui stop`` of a search, which is named as a run is."""

import time
from pathlib import Path

from accel_engine.errors import RunError, UsageError
from accel_engine.run import list_runs, runs_directory
from accel_engine.run.runs.listing import named
from accel_engine.run.store.connection import DATABASE as RUN_DATABASE
from accel_engine.search import launch
from accel_engine.search.study_database import StudyDatabase
from accel_engine.search.study_paths import DATABASE, NAME, studies_directory
from accel_tui.cli.output import write

INTERVAL = 0.05


def named_search(reference: str) -> Path | None:
    """The directory of the search that has this name in full; ``None`` if there is none, or it is a run's id."""
    directory = studies_directory() / reference
    if reference == "last" or not NAME.fullmatch(reference) or not (directory / DATABASE).is_file():
        return None
    if any((path / RUN_DATABASE).is_file() for path in (runs_directory() / reference, Path(reference))):
        return None
    return directory


def search_to_stop(reference: str) -> Path | None:
    """The directory of the search that has this name in full; ``None`` if there is none, or it is a run's id.

    Raises:
        UsageError: A run has the same name.
    """
    search = named_search(reference)
    if search and (same := named(list_runs(), reference)):
        raise UsageError(
            f"a run and a search have the name {reference!r}: give the run's id, {same[0].id}, or stop the search with "
            f"accel-tui stop --search {reference}"
        )
    return search


def stop_search(directory: Path, patience: float, *, wait: bool) -> int:
    """Ask the process of a search to stop, and print its answer; returns the exit status.

    Args:
        directory: The search.
        patience: Seconds to wait for the answer.
        wait: Whether to wait.

    Raises:
        RunError: It does not run, or does not answer.
    """
    name = directory.name
    with StudyDatabase(directory) as database:
        if not launch.is_running(directory):
            raise RunError(f"{_state(database)}; continue it with accel-tui search --resume {name}")
        command = database.request("stop")
        if not wait:
            write(f"{name}: stop requested")
            return 0
        deadline = time.monotonic() + patience
        while (reply := database.answer_to(command)) is None:
            if not launch.is_running(directory) and database.answer_to(command) is None:
                raise RunError(f"{_state(database)}: it ended before it answered")
            if time.monotonic() > deadline:
                raise RunError(f"the search {name} has not answered in {patience:.0f} seconds, and stops after that")
            time.sleep(INTERVAL)
    obeyed, answer = reply
    if not obeyed:
        raise RunError(f"the search {name} did not stop: {answer}")
    write(f"{name}: {answer}; continue it with accel-tui search --resume {name}")
    return 0


def _state(database: StudyDatabase) -> str:
    """What a search is that no process runs."""
    state = database.ended["outcome"] if database.ended else "interrupted"
    return f"the search {database.directory.name} is {state}"
