"""``accel-tui train``: trains a model in the foreground or in the background."""

import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import click

from accel_engine.errors import FieldValue, PlanError
from accel_engine.launch import engine_process
from accel_engine.launch.start_run import prepare_continuation, prepare_run
from accel_engine.plan import DEFAULTS, SPECS, Plan, read_values
from accel_engine.plan.field_spec import AUTO, FieldSpec
from accel_engine.run import RunReader, find
from accel_tui.cli.follow_run import follow, view_for
from accel_tui.cli.interrupts import Interrupts
from accel_tui.cli.output import print_to_stderr, write
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

METAVARS = {int: "N", float: "X", tuple: "ID,..."}

INLINE_CHOICES = 14
"""Up to this length, choices are shown next to the option instead of in its description."""


def _check(context: click.Context, option: click.Parameter, text: str | None) -> Any:
    """Parse the value of an option as the type of its field; ``None`` if the option is not given."""
    if text is None or option.name is None:
        return None
    try:
        value = SPECS[option.name].parse(option.name, text)
    except PlanError as error:
        raise click.BadParameter(f"{text!r} {error.allowed}", context, option) from error
    return AUTO if value is None else value


def plan_option(name: str, spec: FieldSpec, *, default: Any = None, hidden: bool = False) -> click.Option:
    """Make the option of a plan field.

    Args:
        name: The field.
        spec: Its type, bounds and description.
        default: The default to show in the help.
        hidden: Whether to leave it out of the help.
    """
    details = [] if default in (None, "", ()) else [f"default: {default}"]
    metavar = METAVARS.get(spec.type, name.rpartition("_")[2].upper())
    if spec.choices and len("|".join(spec.choices)) <= INLINE_CHOICES:
        metavar = "|".join(spec.choices)
    elif spec.choices:
        details.insert(0, ", ".join(spec.choices))
    elif spec.minimum is not None or spec.above is not None or spec.maximum is not None:
        details.insert(0, spec.allowed)
    elif spec.example:
        details.insert(0, f"e.g. {spec.example}")
    help_text = spec.doc + (f"  [{'; '.join(details)}]" if details else "")
    return click.Option([str(FieldValue(name))], callback=_check, metavar=metavar, help=help_text, hidden=hidden)


_OUTPUTS = (
    click.option(
        "--json",
        "as_json",
        is_flag=True,
        help="Print one JSON object per line, with the loss and accuracy of every step.",
    ),
    click.option("--plain", is_flag=True, help="Print log lines, on a terminal too."),
    click.option("--detach", is_flag=True, help="Print the run's id and return; train in the background."),
)


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --json, --plain and --detach to a command."""
    for option in reversed(_OUTPUTS):
        command = option(command)
    return command


@click.command(epilog=EPILOG)
@click.argument("plan_file", metavar="[PLAN.toml]", required=False, type=click.Path(path_type=Path))
@click.option("--resume", metavar="RUN", help="Same as accel-tui continue RUN.")
@output_options
def train(plan_file: Path | None, resume: str | None, as_json: bool, plain: bool, detach: bool, **flags: Any) -> int:
    """Train a model and show its progress.

    The plan is read from PLAN.toml (or .json); options override it. Without a file, your settings
    and the defaults apply.

    Ctrl-C stops after the current steps and writes a checkpoint; a second Ctrl-C stops at once.
    Training runs in a separate process: it keeps running when the terminal closes, and
    'accel-tui watch last' shows it again.
    """
    refuse_two_outputs(as_json, plain, detach)
    if resume is not None and plan_file is not None:
        raise click.UsageError("--resume uses the run's own plan: leave PLAN.toml out")
    if resume is not None:
        return continue_run(resume, flags, as_json=as_json, plain=plain, detach=detach)
    written = read_values(plan_file) if plan_file else {}
    plan = Plan.from_mapping({**load().plan, **written, **_given(flags)})
    return _run_engine(prepare_run(plan), as_json=as_json, plain=plain, detach=detach)


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
    return _run_engine(
        prepare_continuation(find(reference), _given(flags)), as_json=as_json, plain=plain, detach=detach
    )


def refuse_two_outputs(*chosen: bool) -> None:
    """Raise a usage error when more than one of --json, --plain and --detach is given."""
    if sum(chosen) > 1:
        raise click.UsageError("--json, --plain and --detach exclude each other")


def _given(flags: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in flags.items() if value is not None}


def _run_engine(directory: Path, *, as_json: bool, plain: bool, detach: bool) -> int:
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
        print_to_stderr(f"output closed; training continues in the background: accel-tui watch {directory.name}")
        raise


train.params[1:1] = [plan_option(name, spec, default=DEFAULTS[name]) for name, spec in SPECS.items()]
