"""``accel-tui train``: train in the foreground, for a person, a log or a script, or in the background."""

import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import click

from accel_engine import launch, preflight
from accel_engine.devices import detect
from accel_engine.errors import EngineMissingError, PlanError, RunError
from accel_engine.field_spec import AUTO, FieldSpec
from accel_engine.plan import DEFAULTS, SPECS, Plan, flag, read_values
from accel_engine.run import RunReader, create, find
from accel_engine.run.creation import reopen
from accel_engine.run.worker_runs import run_to_continue
from accel_tui.cli.choose_view import view_for
from accel_tui.cli.follow_run import follow
from accel_tui.cli.interrupts import Interrupts
from accel_tui.cli.output import print_line, write
from accel_tui.settings.user_settings import load

EPILOG = """\b
Examples:
  accel-tui train
  accel-tui train --model resnet20 --data cifar10 --batch-size 128
  accel-tui train plan.toml --learning-rate 3e-4 --json > steps.jsonl
  accel-tui train --resume last --epochs 20

\b
Exit status:
  0  the run finished or was stopped, by Ctrl-C too
  1  it failed or was lost
  2  the plan or the command is wrong
"""

LEAVING_SECONDS = 10.0
"""How long an engine that has ended its run is waited for."""

METAVARS = {int: "N", float: "X", tuple: "ID,..."}

SHORT = 14
"""How long choices may be to stand beside their option instead of in its text."""


def _check(context: click.Context, option: click.Parameter, text: str | None) -> Any:
    """Read a flag's text as its field's type; ``None`` when the flag was not given."""
    if text is None or option.name is None:
        return None
    try:
        value = SPECS[option.name].parse(option.name, text)
    except PlanError as error:
        raise click.BadParameter(f"{text!r} {error.allowed}", context, option) from error
    return AUTO if value is None else value


def _option(name: str, spec: FieldSpec) -> click.Option:
    """A field of the plan as an option of the command."""
    details = [] if DEFAULTS[name] in (None, "", ()) else [f"default: {DEFAULTS[name]}"]
    metavar = METAVARS.get(spec.type, name.rpartition("_")[2].upper())
    if spec.choices and len("|".join(spec.choices)) <= SHORT:
        metavar = "|".join(spec.choices)
    elif spec.choices:
        details.insert(0, ", ".join(spec.choices))
    elif spec.minimum is not None or spec.above is not None or spec.maximum is not None:
        details.insert(0, spec.allowed)
    elif spec.example:
        details.insert(0, f"as in {spec.example}")
    help_text = spec.doc + (f"  [{'; '.join(details)}]" if details else "")
    return click.Option([flag(name)], callback=_check, metavar=metavar, help=help_text)


@click.command(epilog=EPILOG)
@click.argument("plan_file", metavar="[PLAN.toml]", required=False, type=click.Path(path_type=Path))
@click.option("--resume", metavar="RUN", help="Go on with a run that has ended or was lost, from its last checkpoint.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="One JSON object a line on standard output, with every step's loss and accuracy.",
)
@click.option("--plain", is_flag=True, help="Lines fit for a log, on a terminal too.")
@click.option("--detach", is_flag=True, help="Print the run's id and return; training goes on in the background.")
def train(plan_file: Path | None, resume: str | None, as_json: bool, plain: bool, detach: bool, **flags: Any) -> int:
    """Train a model and show how it goes.

    The plan is PLAN.toml (or .json), with what the flags say in place of what it says; without a
    file, your settings or the defaults. With --resume it is the run's own, with what the flags say
    instead, and the run goes on.

    Ctrl-C stops after the steps under way and keeps a checkpoint; twice, it stops at once. Training
    is a process of its own: when the terminal closes or a pipe's reader goes away it goes on, and
    'accel-tui watch last' finds it.
    """
    if as_json + plain + detach > 1:
        raise click.UsageError("--json, --plain and --detach exclude each other")
    if resume is not None and plan_file is not None:
        raise click.UsageError("--resume takes the run's own plan: leave PLAN.toml out")
    given = {name: value for name, value in flags.items() if value is not None}
    if resume is not None:
        directory, plan = _run_to_resume(resume, given)
    else:
        written = read_values(plan_file) if plan_file else {}
        directory, plan = None, Plan.from_mapping({**load().plan, **written, **given})
    preflight.check(plan, detect().devices)
    if problem := launch.find_installation().problem:
        raise EngineMissingError(problem)
    if directory is None:
        directory = create(plan)
    else:
        reopen(directory, plan)
    if detach:
        launch.start(directory)
        write(directory.name)
        return 0
    return _train_here(directory, as_json=as_json, plain=plain)


def _train_here(directory: Path, *, as_json: bool, plain: bool) -> int:
    """Start an engine on a run and show the run until it ends."""
    try:
        with closing(RunReader(directory)) as reader, Interrupts() as interrupts:
            reader.skip()  # what an earlier engine said of a resumed run is no news
            engine = launch.start(directory)
            status = follow(reader, view_for(sys.stdout, as_json=as_json, plain=plain), interrupts)
            with suppress(subprocess.TimeoutExpired):
                engine.wait(LEAVING_SECONDS)  # the next command of a script should find its accelerator free
            return status
    except BrokenPipeError:
        print_line(f"the output was closed; training goes on in the background: accel-tui watch {directory.name}")
        raise


def _run_to_resume(reference: str, changes: dict[str, Any]) -> tuple[Path, Plan]:
    directory = run_to_continue(find(reference))
    with closing(RunReader(directory)) as reader:
        info = reader.info()
    if info.status.live:
        raise RunError(f"run {info.id} is {info.status}: look at it with accel-tui watch {info.id}")
    return directory, Plan.from_mapping(info.values | changes)


train.params[1:1] = [_option(name, spec) for name, spec in SPECS.items()]
