"""``accel-tui compare``: runs side by side."""

import json
import math
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from accel_engine.errors import RunError, UsageError
from accel_engine.run import RunReader, find
from accel_engine.run.listing import summarize
from accel_tui.cli.output import write
from accel_tui.cli.table import shortened, table
from accel_tui.run.curve import CAPACITY
from accel_tui.run.fold_events import fold
from accel_tui.run.state import RunState
from accel_tui.runs.comparison import ComparedRow, ComparedRun, Comparison
from accel_tui.runs.comparison import compare as lay_out

EPILOG = """\b
Examples:
  accel-tui compare k3fp m8w3
  accel-tui compare $(accel-tui runs --filter tag:paper --json | jq -r .run)
"""

TITLE_WIDTH = 20


@click.command(epilog=EPILOG)
@click.argument("runs", nargs=-1, required=True, metavar="RUN RUN...")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def compare(runs: tuple[str, ...], as_json: bool) -> None:
    """Tell what differs between the plans of runs, what is equal, and what came of each.

    Their curves are laid over each other in the dashboard: choose runs in its list with space, then press c.
    """
    directories = list(dict.fromkeys(find(run) for run in runs))
    if len(directories) < 2:
        same = f"{' and '.join(runs)} are the same run: " if len(runs) > 1 else ""
        raise UsageError(f"{same}name two runs or more to compare")
    found = lay_out([_side(directory) for directory in directories])
    if as_json:
        write(json.dumps(_wire(found), default=list))
        return
    titles = [shortened(side.title, TITLE_WIDTH) for side in found.sides]
    write(table(("", *titles), [_line(row) for row in (*found.plan, *found.results)]))
    if not found.plan:
        write("\nTheir plans do not differ.")
    write(f"\n{found.words}")


def _side(directory: Path) -> ComparedRun:
    run = summarize(directory)
    if run.info is None:
        raise RunError(f"run {run.id} cannot be compared: {run.problem}")
    with closing(RunReader(directory, max_samples=0, max_buckets=CAPACITY, past_phases=False)) as reader:
        return ComparedRun(run, fold(RunState(info=run.info), reader.poll()))


def _line(row: ComparedRow) -> tuple[str, ...]:
    return (row.label, *(text + " *" * (place in row.best) for place, text in enumerate(row.texts)))


def _wire(found: Comparison) -> dict[str, Any]:
    return {
        "runs": [side.run.id for side in found.sides],
        "names": [side.title for side in found.sides],
        "differs": {_key(row.label): row.values for row in found.plan},
        "equal": found.equal,
        "results": {_key(row.label): [_number(value) for value in row.values] for row in found.results},
    }


def _key(label: str) -> str:
    return {"steps/s": "steps_per_second", "time": "seconds", "to go": "remaining"}.get(label, label.replace(" ", "_"))


def _number(value: Any) -> Any:
    """What JSON can hold."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
