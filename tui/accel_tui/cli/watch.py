"""``accel-tui watch``: look at a run, live or ended."""

import sys
from contextlib import closing

import click

from accel_engine.run import RunReader, find
from accel_tui.cli.choose_view import view_for
from accel_tui.cli.dashboard import has_terminal, open_dashboard
from accel_tui.cli.follow_run import follow

EPILOG = """\b
Examples:
  accel-tui watch last                       the newest run, in the dashboard
  accel-tui watch k3fp --json | jq 'select(.event == "steps").loss[]'

\b
Exit status:
  0    the run finished or was stopped; the dashboard was left
  1    without the dashboard: it failed or was lost
  2    there is no such run
  130  Ctrl-C left it alone
"""


@click.command(epilog=EPILOG)
@click.argument("run")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line on standard output.")
@click.option("--plain", is_flag=True, help="Lines fit for a log, and no dashboard.")
def watch(run: str, as_json: bool, plain: bool) -> int:
    """Follow RUN from its beginning to its end: in the dashboard, or as lines where there is no terminal.

    Leaving, by Ctrl-C too, leaves the run alone.
    """
    if as_json and plain:
        raise click.UsageError("--json and --plain exclude each other")
    directory = find(run)
    if not (as_json or plain) and has_terminal():
        return open_dashboard(directory)
    with closing(RunReader(directory)) as reader:
        return follow(reader, view_for(sys.stdout, as_json=as_json, plain=plain))
