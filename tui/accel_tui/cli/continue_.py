"""``accel-tui continue``: continues an ended run from its last checkpoint."""

from typing import Any

import click

from accel_engine.errors import UsageError
from accel_engine.plan import SPECS
from accel_engine.run import RunSummary, find_run
from accel_engine.run.runs.listing import summarize
from accel_engine.run.runs.plan_changes import CHANGEABLE
from accel_tui.cli.plan_options import PlanCommand, check_option, given, plan_option
from accel_tui.cli.train import output_options, take_outputs, train_or_queue
from accel_tui.plan.trained_run import TrainedRun, parse_epochs

EPILOG = """\b
Examples:
  accel-tui continue last
  accel-tui continue last --epochs 20
  accel-tui continue last --epochs +5

\b
Exit status:
  0  the run finished or was stopped, by Ctrl-C too
  1  it failed or was lost, or has no checkpoint
  2  the plan or the command is wrong
"""


@click.command("continue", cls=PlanCommand, fields=(), epilog=EPILOG)
@click.argument("run")
@output_options
def continue_(run: str, **flags: Any) -> int:
    """Continue an ended RUN from its last checkpoint.

    The run keeps its id, its curves and its plan; options change the plan from here on. --epochs
    counts from the start of the run, and +N means N more. A paused run is resumed with 'accel-tui resume'.
    """
    outputs = take_outputs(flags)
    if isinstance(flags["epochs"], str):
        flags["epochs"] = _epochs_in_total(flags["epochs"], summarize(find_run(run)))
    return train_or_queue(run, None, given(flags), **outputs)


def _epochs_in_total(text: str, run: RunSummary) -> int | None:
    """The epochs in total, of ``+N``; ``None`` if the run cannot be read, which continuing it will explain."""
    if run.info is None or run.info.plan is None:
        return None
    try:
        return parse_epochs(text, TrainedRun(run.info, run.info.plan, run.epochs))
    except UsageError as error:
        raise click.BadParameter(f"{text!r} {error}", param_hint="--epochs") from error


def _check_epochs(context: click.Context, option: click.Parameter, text: str | None) -> Any:
    return text if text and text.startswith("+") else check_option(context, option, text)


# The hidden ones may not change; the run then says why, and which may.
continue_.params[1:1] = [
    plan_option(name, hidden=name not in CHANGEABLE, check=_check_epochs if name == "epochs" else check_option)
    for name in SPECS
]
