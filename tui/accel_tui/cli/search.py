"""``accel-tui search``: finds the best plan by trials, each of which is a run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from accel_engine.places import HOST, PlaceName, PlaceRequest
from accel_engine.plan import SPECS
from accel_engine.search.definition import SearchOptions
from accel_tui.cli.options import takes
from accel_tui.cli.plan_options import PlanCommand, given
from accel_tui.cli.train import ON_PLACE, asked_of, refuse_two_outputs

EPILOG = """\b
Examples:
  accel-tui search --over learning_rate=1e-4..1e-1:log --over batch_size=32,64
  accel-tui search plan.toml --over optimizer=adam,sgd --within 2h
  accel-tui search --over epochs=5..20 --objective time --json > trials.jsonl
  accel-tui search --resume digits-search
  accel-tui search plan.toml --on slurm:gpu --gpus 1 --at-once 8

\b
Exit status:
  0  the search finished or was stopped, by Ctrl-C too
  1  it failed
  2  the plan, a range or the command is wrong
"""

OVER_HELP = "A field that varies: FIELD=LOW..HIGH, with :log or :step=X after it, or FIELD=A,B,C; once for each field."


@click.command(cls=PlanCommand, fields=[name for name in SPECS if name != "name"], epilog=EPILOG)
@click.argument("plan_file", metavar="[PLAN.toml]", required=False, type=click.Path(path_type=Path))
@click.option("--over", "range_texts", metavar="FIELD=VALUES", multiple=True, help=OVER_HELP)
@click.option("--join", metavar="PATH|URL", help="Join a search on another machine's --storage.")
@click.option("--resume", metavar="NAME", help="Continue a search; last for the newest one.")
@click.option("--list", "list_them", is_flag=True, help="Same as accel-tui searches.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line; the last has the best plan.")
@click.option("--plain", is_flag=True, help="Print log lines, on a terminal too.")
@click.option("--detach", is_flag=True, help="Print the search's name and return; search in the background.")
@ON_PLACE
@takes(PlaceRequest, "asked", without=("write",), if_given=True)
@takes(SearchOptions, "options", if_given=True)
def search(
    plan_file: Path | None,
    options: Mapping[str, Any],
    range_texts: Sequence[str],
    join: str | None,
    resume: str | None,
    list_them: bool,
    as_json: bool,
    plain: bool,
    detach: bool,
    place: PlaceName | None,
    asked: Mapping[str, Any],
    **flags: Any,
) -> int:
    """Find the best plan: train trials with other values of its fields, and compare them.

    Each trial is a run, which can be watched, stopped and compared as any other. Unpromising trials end
    early, and are continued if they turn out to be among the best. The best plan is trained again with other seeds.

    Ctrl-C stops the search and its trials, with checkpoints; a second one leaves at once, and does not wait for them.
    It runs in its own process: --resume shows it, or continues it after a stop or a crash.
    With --on, each trial is a job of a cluster, which shares the directory of runs; the search runs here. On a host,
    all of the search runs there.
    """
    refuse_two_outputs(as_json, plain, detach)
    from accel_tui.cli import search_run, searches  # slow to import

    chosen = given(flags)
    if list_them:
        return searches.show_all(as_json=as_json)
    if sum(value is not None for value in (resume, join)) + bool(plan_file or range_texts) > 1:
        raise click.UsageError("--resume and --join use the search's own plan and ranges: leave out all others")
    if chosen and (resume is not None or join is not None):
        raise click.UsageError(f"the search keeps its plan: leave out --{next(iter(chosen)).replace('_', '-')}")
    where = asked_of(place, asked)
    if where and where[0].kind == HOST:
        if join is not None:
            raise click.UsageError("--join on a host is a command of that host")
        show = search_run.HostSearch(where, as_json=as_json, plain=plain, detach=detach)
        return show.resume(resume, options) if resume else show.start(plan_file, range_texts, options, chosen)
    if resume is not None:
        if where:
            raise click.UsageError("the search keeps its place: leave out --on")
        directory = search_run.resume_search(resume, options)
    elif join is not None:
        directory = search_run.join(join, options, where)
    else:
        directory = search_run.define_search(plan_file, range_texts, options, chosen, where)
    return search_run.follow_search(directory, as_json=as_json, plain=plain, detach=detach)
