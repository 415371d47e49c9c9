"""``accel-tui compare``: compares the plans and results of runs."""

from contextlib import closing
from pathlib import Path
from typing import Any

import click

from accel_engine.errors import RunError, UsageError
from accel_engine.run import RunReader, find_run
from accel_engine.run.runs.listing import summarize
from accel_engine.text import printable_line
from accel_tui.cli.output import table, write, write_json
from accel_tui.formatting.text import shorten
from accel_tui.run_list.comparison import ComparedRow, ComparedRun, Comparison, compare_runs, find_mixed_kinds
from accel_tui.run_state.curve import CAPACITY
from accel_tui.run_state.fold_events import apply_update
from accel_tui.run_state.state import RunState

EPILOG = """\b
Examples:
  accel-tui compare k3fp m8w3
  accel-tui compare $(accel-tui runs --filter tag:paper --json | jq -r .run)
"""

TITLE_WIDTH = 20


@click.command(epilog=EPILOG)
@click.argument("runs", nargs=-1, required=True, metavar="RUN RUN...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def compare(runs: tuple[str, ...], as_json: bool) -> None:
    """Compare runs: the differences of their plans, and their results.

    To compare curves, open the dashboard, select runs with space and press c.
    """
    directories = list(dict.fromkeys(find_run(run) for run in runs))
    if len(directories) < 2:
        same = f"{' and '.join(runs)} are the same run: " if len(runs) > 1 else ""
        raise UsageError(f"{same}give at least two runs to compare")
    compared = [_read_run(directory) for directory in directories]
    if problem := find_mixed_kinds([each.run.info for each in compared if each.run.info]):
        raise UsageError(problem)
    comparison = compare_runs(compared)
    if as_json:
        write_json(_to_json(comparison))
        return
    titles = [shorten(printable_line(compared.title), TITLE_WIDTH) for compared in comparison.runs]
    write(table(("", *titles), [_line(row) for row in (*comparison.plan, *comparison.results)]))
    if not comparison.plan and (comparison.equal or comparison.defaults):
        write("\nThe plans are equal.")
    write(f"\n{comparison.summary}")
    if comparison.kind_of_values:
        write(f"Values of training: {comparison.kind_of_values}.")


def _read_run(directory: Path) -> ComparedRun:
    run = summarize(directory)
    if run.info is None:
        raise RunError(f"run {run.id} cannot be compared: {run.problem}")
    with closing(RunReader(directory, max_samples=0, max_buckets=CAPACITY, past_phases=False)) as reader:
        return ComparedRun(run, apply_update(RunState(info=run.info), reader.poll()))


def _line(row: ComparedRow) -> tuple[str, ...]:
    return (row.label, *(text + " *" * (index in row.best) for index, text in enumerate(row.texts)))


def _to_json(comparison: Comparison) -> dict[str, Any]:
    return {
        "runs": [compared.run.id for compared in comparison.runs],
        "names": [compared.title for compared in comparison.runs],
        "differs": {_key(row): row.values for row in comparison.plan},
        "equal": comparison.equal,
        "results": {_key(row): row.values for row in comparison.results},
    }


def _key(row: ComparedRow) -> str:
    label = row.label
    return row.key or {"steps/s": "steps_per_second", "duration": "seconds"}.get(label, label.replace(" ", "_"))
