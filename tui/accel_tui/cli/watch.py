"""``accel-tui watch``: follows a run, live or ended."""

import sys
from contextlib import closing

import click

from accel_engine.run import RunReader, find_run
from accel_tui.cli.dashboard import has_terminal, open_dashboard
from accel_tui.cli.follow_run import follow_run, view_for
from accel_tui.cli.output import json_option

EPILOG = """\b
Examples:
  accel-tui watch last                       the newest run, in the dashboard
  accel-tui watch k3fp --json | jq 'select(.event == "steps").loss[]'

\b
Exit status:
  0    the run finished or was stopped, or the dashboard was closed
  1    without the dashboard: the run failed or was lost
  2    no such run
  130  interrupted by Ctrl-C; the run is not affected
"""


@click.command(epilog=EPILOG)
@click.argument("run")
@json_option
@click.option("--plain", is_flag=True, help="Print log lines; do not open the dashboard.")
def watch(run: str, as_json: bool, plain: bool) -> int:
    """Follow RUN from its first step to its end, in the dashboard or, without a terminal, as log lines.

    Quitting or Ctrl-C does not affect the run.
    """
    if as_json and plain:
        raise click.UsageError("--json and --plain exclude each other")
    directory = find_run(run)
    if not (as_json or plain) and has_terminal():
        return open_dashboard(directory)
    with closing(RunReader(directory)) as reader:
        return follow_run(reader, view_for(sys.stdout, as_json=as_json, plain=plain))
