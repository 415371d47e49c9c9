"""``accel-tui train``: trains a model in the foreground or in the background."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from accel_engine.plan import DEFAULTS, SPECS
from accel_engine.user_paths import is_named_pipe
from accel_tui.cli.engine_ahead import engine_ahead
from accel_tui.cli.output import print_to_stderr
from accel_tui.cli.plan_options import PlanCommand, given, plan_option
from accel_tui.cli.queue_options import queue_options, take_queue_flags

EPILOG = """\b
Examples:
  accel-tui train
  accel-tui train --model resnet20 --data cifar10 --batch-size 128
  accel-tui train plan.toml --learning-rate 3e-4 --json > steps.jsonl
  accel-tui train plan.toml --queue --after last

\b
Exit status:
  0  the run finished or was stopped, by Ctrl-C too
  1  it failed or was lost
  2  the plan or the command is wrong
"""

_OUTPUTS = (
    click.option(
        "--json",
        "as_json",
        is_flag=True,
        help="Print one JSON object per line, with every series of each step.",
    ),
    click.option("--plain", is_flag=True, help="Print log lines, on a terminal too."),
    click.option("--detach", is_flag=True, help="Print the run's id and return; train in the background."),
)


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --json, --plain and --detach to a command."""
    for option in reversed(_OUTPUTS):
        command = option(command)
    return command


@click.command(cls=PlanCommand, epilog=EPILOG)
@click.argument("plan_file", metavar="[PLAN.toml]", required=False, type=click.Path(path_type=Path))
@click.option("--resume", metavar="RUN", help="Same as accel-tui continue RUN.")
@click.option("--from", "start_from", metavar="RUN", help="Start from a run's weights; same as --initial-weights RUN.")
@output_options
@queue_options
def train(
    plan_file: Path | None,
    resume: str | None,
    start_from: str | None,
    as_json: bool,
    plain: bool,
    detach: bool,
    **flags: Any,
) -> int:
    """Train a model and show its progress.

    The plan is read from PLAN.toml (or .json); options override it. Without a file, your settings
    and the defaults apply.

    Ctrl-C stops after the current steps and writes a checkpoint; a second Ctrl-C stops at once.
    Training runs in a separate process: it keeps running when the terminal closes, and
    'accel-tui watch last' shows it again. With --queue it waits until what it needs is free; see 'accel-tui queue'.
    """
    queued = take_queue_flags(flags)
    refuse_two_outputs(as_json, plain, detach, queued is not None)
    if start_from is not None:
        if flags.get("initial_weights") is not None:
            raise click.UsageError("--from and --initial-weights exclude each other")
        flags["initial_weights"] = start_from
    if resume is not None and plan_file is not None:
        raise click.UsageError("--resume uses the run's own plan: leave PLAN.toml out")
    if plan_file and is_named_pipe(plan_file):
        print_to_stderr(f"waiting for a plan from the pipe {plan_file}")
    if queued is not None:
        from accel_tui.cli import training_run  # slow to import

        if resume is not None:
            return training_run.queue_continuation(resume, given(flags), queued)
        return training_run.queue_new(plan_file, given(flags), queued)
    with engine_ahead() as engine:
        from accel_tui.cli import training_run  # slow to import: the engine starts before

        if resume is not None:
            directory = training_run.reopen_run(resume, given(flags))
        else:
            directory = training_run.create_run(plan_file, given(flags))
        return training_run.train_run(directory, engine, as_json=as_json, plain=plain, detach=detach)


def refuse_two_outputs(*chosen: bool) -> None:
    """Raise a usage error when more than one of --json, --plain, --detach and --queue, in this order, is given."""
    if sum(chosen) > 1:
        names = ("--json", "--plain", "--detach", "--queue")[: len(chosen)]
        raise click.UsageError(f"{', '.join(names[:-1])} and {names[-1]} exclude each other")


train.params[1:1] = [plan_option(name, default=DEFAULTS[name]) for name in SPECS]
