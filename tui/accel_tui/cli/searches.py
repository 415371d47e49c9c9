"""``accel-tui searches``: lists searches."""

import time
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from accel_engine.errors import RunError, UsageError
from accel_engine.run import list_runs, runs_directory
from accel_engine.run.runs.listing import runs_named
from accel_engine.run.store.database import DATABASE as RUN_DATABASE
from accel_engine.search import launch
from accel_engine.search.progress import trials_done
from accel_engine.search.study_database import StudyDatabase
from accel_engine.search.study_paths import DATABASE, NAME, studies_directory
from accel_engine.text import printable_line
from accel_engine.words import numbers
from accel_tui.cli.output import json_option, table, write, write_json
from accel_tui.plan import field_labels
from accel_tui.study_state.study_list import ListedStudy, StudyList
from accel_tui.study_state.study_texts import objective_name, objective_text

EPILOG = """\b
Examples:
  accel-tui searches
  accel-tui searches --json | jq -r .search
"""

HEADER = ("SEARCH", "STATE", "CREATED", "TRIALS", "BEST", "MONITOR", "OVER")

NONE = "No searches yet. Begin one: accel-tui search --over learning_rate=1e-4..1e-1:log"


@click.command(epilog=EPILOG)
@json_option
def searches(as_json: bool) -> int:
    """List searches, newest first, with the best values of their trials."""
    return show_all(as_json=as_json)


def show_all(*, as_json: bool) -> int:
    """List all searches, newest first; returns the exit status."""
    with closing(StudyList()) as listed:
        found = list(map(_summary, listed.read()))
    if as_json:
        write_json(*found)
    else:
        write(table(HEADER, [_row(each) for each in found]) if found else NONE)
    return 0


def _summary(study: ListedStudy) -> dict[str, Any]:
    """The row of a search; with the problem, if it cannot be read."""
    name, state = study.directory.name, study.state
    if state is None or state.definition is None:
        return {"search": name, "state": "unreadable", "problem": study.problem}
    return {
        "search": name,
        "state": state.outcome,
        "created": state.created,
        "trials": state.definition.trials,
        "ended": trials_done(state.trials.values()),
        "monitor": state.monitor.name,
        "best": state.best.objectives[state.monitor.name] if state.best else None,
        "over": [each.name for each in state.parameters],
    }


def _row(found: dict[str, Any]) -> tuple[str, ...]:
    if "problem" in found:
        return found["search"], found["state"], "", "", "", "", printable_line(found["problem"])
    best = "" if found["best"] is None else objective_text(found["monitor"], found["best"])
    ago, ended = numbers.ago(time.time() - found["created"]), f"{found['ended']} of {found['trials']}"
    monitor, fields = objective_name(found["monitor"]), ", ".join(map(field_labels.label, found["over"]))
    row = (found["search"], found["state"], ago, ended, best, monitor, fields)
    return tuple(map(printable_line, row))


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
    if search and (same := runs_named(list_runs(), reference)):
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
        RunError: The search does not run, or does not answer.
    """
    name = directory.name
    with StudyDatabase(directory) as database:
        if not launch.is_search_running(directory):
            raise RunError(f"{_state(database)}; continue it with accel-tui search --resume {name}")
        command = database.request("stop")
        if not wait:
            write(f"{name}: stop requested")
            return 0
        deadline = time.monotonic() + patience
        while (reply := database.answer_to(command)) is None:
            if not launch.is_search_running(directory) and database.answer_to(command) is None:
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
    """The state of a search that no process runs."""
    ended = database.part.ended
    state = ended["outcome"] if ended else "interrupted"
    return f"the search {database.directory.name} is {state}"
