"""``accel-tui searches``: lists searches."""

import time
from pathlib import Path
from typing import Any

import click

from accel_engine.errors import AccelError
from accel_engine.search import launch
from accel_engine.search.progress import trials_done
from accel_engine.search.results import best_trial
from accel_engine.search.study_database import StudyDatabase
from accel_engine.search.study_paths import studies
from accel_engine.text import printable_line
from accel_engine.words import numbers
from accel_tui.cli.output import json_option, table, write, write_json
from accel_tui.formatting import field_labels
from accel_tui.study_state.texts import objective_name, objective_text

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
    found = [_summary_or_problem(directory) for directory in studies()]
    if as_json:
        write_json(*found)
    else:
        write(table(HEADER, [_row(each) for each in found]) if found else NONE)
    return 0


def _summary_or_problem(directory: Path) -> dict[str, Any]:
    """A search in a row; why it cannot be read, of one that is damaged or newer than this program."""
    try:
        return _summary(directory)
    except AccelError as error:
        return {"search": directory.name, "state": "unreadable", "problem": str(error)}


def _summary(directory: Path) -> dict[str, Any]:
    with StudyDatabase(directory) as database:
        definition, trials, ended, created = database.definition, database.trials(), database.ended, database.created
    state = str(ended["outcome"]) if ended else "interrupted"
    best, monitor = best_trial(definition, trials), definition.objectives[0].name
    return {
        "search": directory.name,
        "state": "running" if launch.is_running(directory) else state,
        "created": created,
        "trials": definition.trials,
        "ended": trials_done(trials),
        "monitor": monitor,
        "best": best.objectives[monitor] if best else None,
        "over": [each.name for each in definition.parameters],
    }


def _row(found: dict[str, Any]) -> tuple[str, ...]:
    if "problem" in found:
        return found["search"], found["state"], "", "", "", "", printable_line(found["problem"])
    best = "" if found["best"] is None else objective_text(found["monitor"], found["best"])
    ago, ended = numbers.ago(time.time() - found["created"]), f"{found['ended']} of {found['trials']}"
    monitor, over = objective_name(found["monitor"]), ", ".join(map(field_labels.label, found["over"]))
    row = (found["search"], found["state"], ago, ended, best, monitor, over)
    return tuple(map(printable_line, row))
