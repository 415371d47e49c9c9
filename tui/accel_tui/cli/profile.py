"""``accel-tui profile``: the operations and kernels that take the time of a step, from a trace."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from accel_engine.devices.device_types import Device
from accel_engine.op_profile.options import ProfileOptions, xprof_command
from accel_engine.op_profile.profile_run import check_profile_plan, profile_run
from accel_engine.plan import Plan
from accel_engine.process.engine_call import ask
from accel_engine.requests.profile_plan import ProfilePhase, ProfileRequest
from accel_engine.requests.protocol.request import ExamplesDone
from accel_engine.run import find_run
from accel_engine.run.diagnostics import OpProfile
from accel_engine.words import numbers
from accel_tui.cli.chosen_plan import is_plan_file, plan_file_or_run, with_chosen_plan
from accel_tui.cli.options import takes
from accel_tui.cli.output import paragraph, print_to_stderr, table, write, write_json
from accel_tui.cli.plan_options import PlanCommand, given
from accel_tui.formatting import op_profile
from accel_tui.settings.user_settings import load_settings

EPILOG = """\b
Examples:
  accel-tui profile last
  accel-tui profile last --seconds 1 --json | jq '.operations[0]'
  accel-tui profile --model cnn --data digits --xla on

\b
Exit status:
  0  the profile is shown
  1  the trace could not be made
  2  the run cannot be profiled, or the plan or the command is wrong
"""


@click.command(cls=PlanCommand, epilog=EPILOG)
@click.argument("plan_or_run", metavar="[RUN | PLAN.toml]", required=False)
@takes(ProfileOptions, "options")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def profile(plan_or_run: str | None, options: ProfileOptions, as_json: bool, **flags: Any) -> None:
    """Show the operations and kernels that take the time of a step, by a trace of TensorFlow's profiler.

    A live RUN, also of a script, is traced while it trains, which changes nothing of its training. Of an
    ended RUN or a plan, an engine process takes steps from the initial weights: a plan is read from
    PLAN.toml (or .json), and options override it or the plan of RUN, as for 'accel-tui train'.

    Each operation has its share of the time, its FLOP/s and bytes per second, and how near these are to
    what the device can do. The trace stays in the run's directory, for XProf.
    """
    chosen = given(flags)
    if plan_or_run is not None and not chosen and not is_plan_file(plan_or_run):
        directory = find_run(plan_or_run)
        found = profile_run(directory, options, _ask, _show)
        _print(found, directory, as_json=as_json)
        return
    plan = with_chosen_plan(load_settings(), plan_file_or_run(plan_or_run, chosen), chosen, _checked)
    _print(_ask(ProfileRequest(plan, options.seconds)), None, as_json=as_json)


def _checked(plan: Plan, _: Sequence[Device]) -> Plan:
    """Check that a plan can be trained as a new run, and its steps can be profiled.

    Raises:
        AccelError: The plan does not fit the machine, the data or the model.
    """
    return check_profile_plan(plan).plan


def _ask(request: ProfileRequest) -> OpProfile:
    return ask(request, _show)


def _show(part: ProfilePhase | ExamplesDone) -> None:
    print_to_stderr(part.text if isinstance(part, ProfilePhase) else numbers.examples_done(part.done, part.of))


def _print(found: OpProfile, directory: Path | None, *, as_json: bool) -> None:
    if as_json:
        where = {"run": directory.name, "directory": str(directory)} if directory else {}
        write_json({**where, **asdict(found), "idle": found.idle})
        return
    write(op_profile.profile_headline(found))
    for each in op_profile.profile_tables(found):
        write(f"\n{each.title}\n{table(each.header, each.rows)}")
        if each.note:
            write(f"{each.note} --json has more.")
    write()
    for note in op_profile.profile_notes(found):
        write(paragraph(note))
    if directory and found.trace:
        write(f"Open the trace in XProf: {xprof_command(directory)}")
