"""``accel-tui continue``: continues an ended run from its last checkpoint."""

from typing import Any

import click

from accel_engine.plan import SPECS
from accel_engine.run.plan_changes import CHANGEABLE
from accel_tui.cli.plan_options import PlanCommand, plan_option
from accel_tui.cli.train import continue_run, output_options, refuse_two_outputs

EPILOG = """\b
Examples:
  accel-tui continue last
  accel-tui continue last --epochs 20

\b
Exit status:
  0  the run finished or was stopped, by Ctrl-C too
  1  it failed or was lost, or has no checkpoint
  2  the plan or the command is wrong
"""


@click.command("continue", cls=PlanCommand, epilog=EPILOG)
@click.argument("run")
@output_options
def continue_(run: str, as_json: bool, plain: bool, detach: bool, **flags: Any) -> int:
    """Continue an ended RUN from its last checkpoint.

    The run keeps its id, its curves and its plan; options change the plan from here on. --epochs
    counts from the start of the run. A paused run is resumed with 'accel-tui resume'.
    """
    refuse_two_outputs(as_json, plain, detach)
    return continue_run(run, flags, as_json=as_json, plain=plain, detach=detach)


# The hidden ones may not change; the run then says why, and which may.
continue_.params[1:1] = [plan_option(name, hidden=name not in CHANGEABLE) for name in SPECS]
