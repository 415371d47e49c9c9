"""``accel-tui find``: finds a batch size or a learning rate by measuring."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from accel_engine.devices.device_types import Device
from accel_engine.finders.learning_rate_finder import RampOptions
from accel_engine.finders.throughput import SizeOptions
from accel_engine.places import PlaceName, PlaceRequest
from accel_engine.plan import Plan
from accel_engine.plan.plan_file import read_plan_file
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.run import find_run
from accel_tui.cli.options import takes
from accel_tui.cli.output import json_option, print_to_stderr
from accel_tui.cli.plan_options import PlanCommand, given
from accel_tui.cli.train import ON_PLACE, asked_of

EPILOG = """\b
Examples:
  accel-tui find learning-rate --model resnet20 --data cifar10
  accel-tui find batch-size plan.toml
"""

RATE_EPILOG = """\b
Examples:
  accel-tui find learning-rate --model resnet20 --data cifar10
  accel-tui find learning-rate plan.toml --optimizer sgd --momentum 0.9
  accel-tui find learning-rate --run last
  accel-tui find learning-rate plan.toml --on slurm:gpu --gpus 1
  accel-tui find learning-rate plan.toml --json | tail -1 | jq .learning_rate

\b
Exit status:
  0    a learning rate was found
  1    none can be suggested; the last line gives the reason
  2    wrong usage, or a plan for which a learning rate means nothing
  130  interrupted by Ctrl-C
"""

SIZE_EPILOG = """\b
Examples:
  accel-tui find batch-size --model resnet20 --data cifar10
  accel-tui find batch-size plan.toml --strategy mirrored
  accel-tui find batch-size plan.toml --json | tail -1 | jq .batch_size

\b
Exit status:
  0    a batch size was found
  1    none trains; the last line gives the reason
  2    wrong usage, or a plan for which none can be measured
  130  interrupted by Ctrl-C
"""


@click.group(epilog=EPILOG, invoke_without_command=True)
@click.pass_context
def find(context: click.Context) -> None:
    """Find a batch size or a learning rate by measuring: real steps, in separate processes.

    Nothing is written to disk that stays.
    """
    if context.invoked_subcommand is None:
        raise click.UsageError("give what to find: batch-size or learning-rate")


@find.command("learning-rate", cls=PlanCommand, epilog=RATE_EPILOG)
@click.argument("plan_file", metavar="[PLAN.toml]", required=False, type=click.Path(path_type=Path))
@click.option("--run", metavar="RUN", help="Find the rate to continue RUN with, from its last checkpoint.")
@takes(RampOptions, "options")
@ON_PLACE
@takes(PlaceRequest, "asked", without=("write",), if_given=True)
@json_option
def learning_rate(
    plan_file: Path | None,
    run: str | None,
    options: RampOptions,
    place: PlaceName | None,
    asked: Mapping[str, Any],
    as_json: bool,
    **flags: Any,
) -> int:
    """Find a learning rate: the loss while the rate rises at each step, for several seeds.

    The plan is read from PLAN.toml (or .json), and options override it, as for 'accel-tui train'.

    A seed gives initial weights and an order of the examples; from a checkpoint, an order only.

    The loss is smoothed, and three rates are suggested with their spread over the seeds. The plan is
    trained for some steps with each, and the best one is the answer.

    With --run, the ramps begin at the run's last checkpoint, and nothing is trained further. A live run is
    paused meanwhile, and trains on as if nothing had happened.
    With --on, a host or a machine of a cluster measures.
    """
    from accel_engine.finders.learning_rate_finder import check_plan
    from accel_tui.cli.finder_output import find_of_plan, find_of_run

    if where := _where(place, asked, run):
        return _find_at_place(where, "learning-rate", plan_file, given(flags), options, check_plan, as_json=as_json)
    if run is None:
        return find_of_plan(_checked(plan_file, given(flags), check_plan), options, as_json=as_json)
    if plan_file is not None or given(flags):
        raise click.UsageError("--run uses the run's own plan: leave PLAN.toml and its options out")
    return find_of_run(find_run(run), options, as_json=as_json)


@find.command("batch-size", cls=PlanCommand, epilog=SIZE_EPILOG)
@click.argument("plan_file", metavar="[PLAN.toml]", required=False, type=click.Path(path_type=Path))
@click.option("--run", metavar="RUN", help="Use the plan of RUN, and what it recorded of its gradients.")
@takes(SizeOptions, "options")
@ON_PLACE
@takes(PlaceRequest, "asked", without=("write",), if_given=True)
@json_option
def batch_size(
    plan_file: Path | None,
    run: str | None,
    options: SizeOptions,
    place: PlaceName | None,
    asked: Mapping[str, Any],
    as_json: bool,
    **flags: Any,
) -> int:
    """Find a batch size: throughput and memory of sizes that double, each in its own processes.

    The plan is read from PLAN.toml (or .json), and options override it, as for 'accel-tui train'.

    Sizes grow until one does not fit or gets slower. The answer is the smallest size whose throughput is
    within 10% of the fastest; it is measured again in a fresh process, with a validation.
    With --on, a host or a machine of a cluster measures.
    """
    from accel_engine.finders.batch_size_finder import check_plan
    from accel_tui.cli.chosen_plan import plan_of_run
    from accel_tui.cli.finder_output import find_size

    def check(plan: Plan, _: int) -> None:
        check_plan(plan)

    if where := _where(place, asked, run):
        return _find_at_place(where, "batch-size", plan_file, given(flags), options, check, as_json=as_json)
    if run is None:
        return find_size(_checked(plan_file, given(flags), check), options, None, as_json=as_json)
    if plan_file is not None:
        raise click.UsageError("--run uses the run's own plan: leave PLAN.toml out")
    plan = _checked(None, {**plan_of_run(run), **given(flags)}, check)
    return find_size(plan, options, find_run(run), as_json=as_json)


def _where(place: PlaceName | None, asked: Mapping[str, Any], run: str | None) -> tuple[PlaceName, PlaceRequest] | None:
    if place is not None and run is not None:
        raise click.UsageError("--run measures where the run is: leave out --on")
    return asked_of(place, asked)


def _find_at_place(
    where: tuple[PlaceName, PlaceRequest],
    what: str,
    plan_file: Path | None,
    fields: dict[str, Any],
    options: object,
    check_for: Callable[[Plan, int], object],
    *,
    as_json: bool,
) -> int:
    from accel_tui.cli.measure_at_place import measure_at_place  # seldom needed

    def check(resolved: ResolvedPlan) -> None:
        check_for(resolved.plan, resolved.step_counts.total_steps if resolved.step_counts else 0)

    return measure_at_place(where, ["find", what], plan_file, fields, options, check, as_json=as_json)


def _checked(plan_file: Path | None, flags: dict[str, Any], check_for: Callable[[Plan, int], object]) -> Plan:
    """The plan that the user has chosen, checked on this machine.

    Args:
        plan_file: A TOML or JSON file.
        flags: The given options.
        check_for: Checks that a finder can take the plan, with its total number of steps.

    Raises:
        AccelError: The plan does not fit, or TensorFlow is missing.
    """
    from accel_engine.measure.trial_memory import devices_of
    from accel_engine.plan import isolation, resolved_plan
    from accel_engine.process.engine_process import require_installation
    from accel_tui.cli.chosen_plan import with_chosen_plan
    from accel_tui.formatting.runs import device_warnings
    from accel_tui.settings.user_settings import load_settings

    def check(plan: Plan, devices: Sequence[Device]) -> Plan:
        resolved = resolved_plan.resolve_to_train(plan, devices)
        check_for(plan, resolved.step_counts.total_steps if resolved.step_counts else 0)
        require_installation()
        return resolved.with_chosen_model().plan

    plan = with_chosen_plan(load_settings(), read_plan_file(plan_file) if plan_file else None, flags, check)
    print_to_stderr(*filter(None, (*device_warnings(devices_of(plan)), isolation.warning(resolved_plan.resolve(plan)))))
    return plan
