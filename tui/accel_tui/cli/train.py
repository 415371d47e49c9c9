"""``accel-tui train``: trains a model in the foreground or in the background."""

import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import click

from accel_engine.launch import engine_process
from accel_engine.launch.start_run import prepare_continuation, prepare_run
from accel_engine.plan import DEFAULTS, SPECS, isolation
from accel_engine.plan.plan_file import read_plan_file
from accel_engine.plan.resolved_plan import resolve
from accel_engine.run import RunReader, find
from accel_engine.run.connection import DATABASE
from accel_engine.user_paths import is_named_pipe
from accel_tui.cli.chosen_plan import with_chosen_plan
from accel_tui.cli.follow_run import follow, view_for
from accel_tui.cli.interrupts import Interrupts
from accel_tui.cli.output import print_to_stderr, write
from accel_tui.cli.plan_options import PlanCommand, given, plan_option
from accel_tui.settings.user_settings import load

EPILOG = """\b
Examples:
  accel-tui train
  accel-tui train --model resnet20 --data cifar10 --batch-size 128
  accel-tui train plan.toml --learning-rate 3e-4 --json > steps.jsonl

\b
Exit status:
  0  the run finished or was stopped, by Ctrl-C too
  1  it failed or was lost
  2  the plan or the command is wrong
"""

EXIT_SECONDS = 10.0
"""Seconds to wait for the engine process to exit after its run has ended."""

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
    'accel-tui watch last' shows it again.
    """
    refuse_two_outputs(as_json, plain, detach)
    if start_from is not None:
        if flags.get("initial_weights") is not None:
            raise click.UsageError("--from and --initial-weights exclude each other")
        flags["initial_weights"] = start_from
    if resume is not None and plan_file is not None:
        raise click.UsageError("--resume uses the run's own plan: leave PLAN.toml out")
    if resume is not None:
        return continue_run(resume, flags, as_json=as_json, plain=plain, detach=detach)
    if plan_file and is_named_pipe(plan_file):
        print_to_stderr(f"waiting for a plan from the pipe {plan_file}")
    directory = with_chosen_plan(
        load(),
        read_plan_file(plan_file) if plan_file else None,
        given(flags),
        lambda plan, devices: prepare_run(plan, devices, print_to_stderr),
    )
    return _run_engine(directory, as_json=as_json, plain=plain, detach=detach)


def continue_run(reference: str, flags: Mapping[str, Any], *, as_json: bool, plain: bool, detach: bool) -> int:
    """Continue an ended run from its last checkpoint and show its progress.

    Args:
        reference: The run, as :func:`accel_engine.run.find` takes it.
        flags: New values of plan fields; ``None`` for unchanged.
        as_json: Whether to print JSON lines.
        plain: Whether to print log lines on a terminal too.
        detach: Whether to train in the background.

    Returns:
        The exit status.

    Raises:
        RunError: The run is live, has no checkpoint, or cannot be continued here.
        PlanError: A changed field must not change, or all epochs are already trained.
    """
    directory = prepare_continuation(find(reference), given(flags), print_to_stderr)
    return _run_engine(directory, as_json=as_json, plain=plain, detach=detach)


def refuse_two_outputs(*chosen: bool) -> None:
    """Raise a usage error when more than one of --json, --plain and --detach is given."""
    if sum(chosen) > 1:
        raise click.UsageError("--json, --plain and --detach exclude each other")


def _run_engine(directory: Path, *, as_json: bool, plain: bool, detach: bool) -> int:
    with closing(RunReader(directory)) as reader:
        plan = reader.info().plan
    if plan and (warning := isolation.warning(resolve(plan, chosen=()))):
        print_to_stderr(f"warning: {warning}")
    if detach:
        engine_process.start(directory)
        write(directory.name)
        return 0
    return _train_in_foreground(directory, as_json=as_json, plain=plain)


def _train_in_foreground(directory: Path, *, as_json: bool, plain: bool) -> int:
    """Start the engine of a run and show the run until it ends."""
    try:
        with closing(RunReader(directory)) as reader, Interrupts() as interrupts:
            reader.skip()  # the events of an earlier engine were shown before
            engine = engine_process.start(directory)
            status = follow(reader, view_for(sys.stdout, as_json=as_json, plain=plain), interrupts)
            with suppress(subprocess.TimeoutExpired):
                engine.wait(EXIT_SECONDS)  # frees the accelerator for the next command of a script
            return status
    except BrokenPipeError:
        again = f": accel-tui watch {directory.name}" if (directory / DATABASE).is_file() else ""
        print_to_stderr(f"output closed; training continues in the background{again}")
        raise


train.params[1:1] = [plan_option(name, default=DEFAULTS[name]) for name in SPECS]
