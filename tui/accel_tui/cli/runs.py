"""``accel-tui runs``: what ran, is running or was lost."""

import json
import math
import time
from collections.abc import Mapping
from typing import Any

import click

from accel_engine.run import RunSummary, list_runs, runs_directory
from accel_tui.cli.durations import ago, duration
from accel_tui.cli.event_text import number
from accel_tui.cli.output import write
from accel_tui.cli.table import shortened, table
from accel_tui.runs.columns import TITLES, SortOrder, ordered, title_of
from accel_tui.runs.run_filter import fits, parse

EPILOG = """\b
Examples:
  accel-tui runs
  accel-tui runs --filter 'model:cnn status:finished' --sort val-acc
  accel-tui runs --filter status:lost --json | jq -r .run
"""

HEADER = ("RUN", "STATUS", "BEGUN", "TOOK", "STEPS", "LOSS", "ACC", "VAL ACC")

NAME_WIDTH = 22

COLUMNS = {title.replace(" ", "-"): title for title in TITLES}
"""What the list can be put in order by, and the title of each on the screen."""

SORT_HELP = f"What to order them by: {', '.join(COLUMNS)}.  [default: begun]"


@click.command(epilog=EPILOG)
@click.option(
    "--filter", "words", default="", metavar="WORDS", help="Only runs that fit: words anywhere, or key:value."
)
@click.option("--sort", "column", type=click.Choice(tuple(COLUMNS)), default="begun", metavar="COLUMN", help=SORT_HELP)
@click.option("--reverse", is_flag=True, help="The other way round.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line on standard output.")
def runs(words: str, column: str, reverse: bool, as_json: bool) -> None:
    """List the runs, newest first, with the means of their last epoch and the accuracy of their last validation.

    WORDS are looked for in id, name, model, data, strategy, tags, status, note and host, or in one of them, as in
    status:failed or tag:paper, or in any field of the plan, as in batch_size:64.
    """
    everything = list_runs()
    terms = parse(words)
    found = ordered((run for run in everything if fits(run, terms)), SortOrder(COLUMNS[column], turned=reverse))
    if as_json:
        for run in found:
            write(json.dumps(_wire(run)))
        return
    if everything and not found:
        write(f"None of {len(everything)} runs fits {words!r}.")
        return
    if not found:
        write(f"There are no runs yet in {runs_directory()}. Make one: accel-tui train")
        return
    write(table(HEADER, [_row(run) for run in found]))
    for run in found:
        if run.problem:
            write(f"\n{run.problem}")
        if run.membership:
            write(f"\n{run.id} is {run.membership}")


def _row(run: RunSummary) -> tuple[str, ...]:
    metrics = run.metrics or {}
    return (
        shortened(title_of(run), NAME_WIDTH),
        str(run.status or "unreadable"),
        ago(time.time() - run.info.created) if run.info else "",
        duration(run.seconds) if run.steps else "",
        f"{run.steps:,}" if run.steps else "",
        *(_metric(metrics, name) for name in ("loss", "accuracy", "validation_accuracy")),
    )


def _metric(metrics: Mapping[str, float], name: str) -> str:
    return number(metrics[name], name) if name in metrics else ""


def _wire(run: RunSummary) -> dict[str, Any]:
    metrics = {name: value if math.isfinite(value) else None for name, value in (run.metrics or {}).items()}
    return {
        "run": run.id,
        "status": str(run.status) if run.status else None,
        "directory": str(run.directory),
        "created": run.info.created if run.info else None,
        "seconds": round(run.seconds, 3),
        "steps": run.steps,
        "name": run.info.name if run.info else "",
        "note": run.info.annotations.note if run.info else "",
        "tags": run.info.annotations.tags if run.info else (),
        "metrics": metrics,
        "plan": run.info.values if run.info else {},
        "worker": run.membership.worker if run.membership else "",
        "worker_of": run.membership.run if run.membership else "",
        "reason": run.reason,
        "problem": run.problem,
    }
