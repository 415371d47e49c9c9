"""``accel-tui runs``: lists runs."""

import os
import time
from typing import Any

import click

from accel_engine.errors import UsageError
from accel_engine.hosts.reading import read_all
from accel_engine.run import RunSummary, list_runs, runs_directory
from accel_engine.text import printable_line, suggestion
from accel_engine.user_paths import exists, is_directory
from accel_engine.words import numbers
from accel_tui.cli.output import json_option, print_to_stderr, table, terminal_columns, write, write_json
from accel_tui.formatting.table_columns import SortOrder, sort_rows
from accel_tui.formatting.text import shorten
from accel_tui.run_list.columns import COLUMNS, TITLES, best_value_text, monitor_of, run_steps, run_title, status_of
from accel_tui.run_list.run_filter import key_error, matches, parse_filter

EPILOG = """\b
Examples:
  accel-tui runs
  accel-tui runs --filter 'model:cnn status:finished' --sort best
  accel-tui runs --filter status:lost --json | jq -r .run
"""

HEADER = ("RUN", "STATUS", "CREATED", "DURATION", "STEPS", "LOSS", "BEST", "MONITOR")

NAME_WIDTH = 18
"""Columns for the name on a terminal of 80 columns; a wider one gives it the rest."""

MONITOR_WIDTH = 8
"""Columns for the name of the metric that counts on a terminal of 80 columns."""

WIDE_MONITOR_WIDTH = 20
"""The same on a wide terminal."""

SORTABLE = {title.replace(" ", "-"): title for title in TITLES}
"""The titles of the dashboard's columns by their names for --sort."""

SORT_HELP = f"Sort by a column: {', '.join(SORTABLE)}.  [default: created]"


def _column(_context: click.Context, _option: click.Parameter, name: str) -> str:
    """The title of a column."""
    if name not in SORTABLE:
        raise click.BadParameter(f"no column {name!r}; {suggestion(name, SORTABLE)}")
    return SORTABLE[name]


@click.command(epilog=EPILOG)
@click.option(
    "--filter", "text", default="", metavar="FILTER", help="List only matching runs: words, or key:value terms."
)
@click.option("--sort", "column", default="created", metavar="COLUMN", callback=_column, help=SORT_HELP)
@click.option("--reverse", is_flag=True, help="Reverse the order.")
@json_option
def runs(text: str, column: str, reverse: bool, as_json: bool) -> None:
    """List runs, newest first, with the metrics of their last epoch and validation.

    FILTER searches id, kind, name, model, data, strategy, tags, status, note, script and host. A term with a key
    searches one of them, e.g. status:failed or tag:paper, or a field of the plan, e.g. batch_size:64.
    """
    if error := key_error(text):
        raise UsageError(error)
    unread = [reading.message for reading in read_all() if reading.state != "connected"]
    everything = list_runs()
    terms = parse_filter(text)
    found = sort_rows((run for run in everything if matches(run, terms)), COLUMNS, SortOrder(column, reversed=reverse))
    for message in unread:
        print_to_stderr(f"its runs are as they were: {message}")
    if as_json:
        write_json(*map(_wire, found))
        return
    if everything and not found:
        write(f"No matching runs: {text!r} matches none of {numbers.counted(len(everything), 'run')}.")
        return
    if not found:
        write(_no_runs())
        return
    spare = max(terminal_columns() - 80, 0)
    monitor_width = min(MONITOR_WIDTH + spare, WIDE_MONITOR_WIDTH)
    name_width = NAME_WIDTH + spare - (monitor_width - MONITOR_WIDTH)
    write(table(HEADER, [_row(run, name_width, monitor_width) for run in found]))
    for run in found:
        if run.problem:
            write(f"\n{run.problem}")
        if run.info and run.info.waiting:
            write(f"\n{run.id}: {run.info.waiting.waiting}")
        if run.membership:
            write(f"\n{run.id} is {run.membership}")


def _no_runs() -> str:
    directory = runs_directory()
    existing = next((each for each in (directory, *directory.parents) if exists(each)), directory)
    if not is_directory(existing) or not os.access(existing, os.W_OK | os.X_OK):
        return f"No runs, and {directory} cannot be written. Set ACCEL_TUI_HOME to a writable directory."
    return f"No runs yet in {directory}. Start one: accel-tui train"


def _row(run: RunSummary, name_width: int, monitor_width: int) -> tuple[str, ...]:
    metrics = run.metrics or {}
    return (
        shorten(printable_line(run_title(run)), name_width),
        status_of(run),
        numbers.ago(time.time() - run.info.created) if run.info and run.info.created else "",
        numbers.duration(run.seconds) if run.seconds else "",
        f"{steps:,}" if (steps := run_steps(run)) else "",
        numbers.metric(metrics["loss"]) if "loss" in metrics else "",
        best_value_text(run),
        printable_line(monitor_of(run, monitor_width)),
    )


def _wire(run: RunSummary) -> dict[str, Any]:
    return {
        "run": run.id,
        "kind": run.info.kind if run.info else None,
        "status": str(run.status) if run.status else None,
        "directory": str(run.directory),
        "created": (run.info.created or None) if run.info else None,
        "seconds": round(run.seconds, 3),
        "steps": run_steps(run),
        "name": run.info.name if run.info else "",
        "note": run.info.annotations.note if run.info else "",
        "tags": run.info.annotations.tags if run.info else (),
        "metrics": run.metrics or {},
        "monitor": run.monitor,
        "best": run.best,
        "baseline": run.baseline,
        "baseline_name": run.baseline_name,
        "plan": run.info.plan_values if run.info else {},
        "script": run.info.script if run.info else "",
        "worker": run.membership.worker if run.membership else "",
        "worker_of": run.membership.run if run.membership else "",
        "reason": run.reason,
        "waiting": str(run.info.waiting) if run.info and run.info.waiting else "",
        "problem": run.problem,
    }
