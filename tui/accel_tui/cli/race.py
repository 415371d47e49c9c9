"""``accel-tui race``: measures the configurations of a plan on this machine side by side."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from accel_engine.devices import detect
from accel_engine.devices.device_types import Device
from accel_engine.plan import DEFAULTS, SPECS, Plan, isolation, resolved_plan
from accel_engine.plan.plan_file import read_plan_file
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.process.engine_process import require_installation
from accel_engine.race.comparison import find_best
from accel_engine.race.configuration import Best, ConfigurationResult
from accel_engine.race.configurations import check_raceable
from accel_engine.race.race import Race, RaceOptions
from accel_tui.cli.chosen_plan import with_chosen_plan
from accel_tui.cli.options import takes
from accel_tui.cli.output import print_to_stderr, write, write_json
from accel_tui.cli.plan_options import PlanCommand, given, plan_option
from accel_tui.cli.race_view import LiveBars, Show, StateLines, configuration_values, results_page, show_json
from accel_tui.cli.signals import INTERRUPTED, interruptible
from accel_tui.formatting import race as race_text
from accel_tui.formatting.runs import device_warnings
from accel_tui.settings.user_settings import load

EPILOG = """\b
Examples:
  accel-tui race
  accel-tui race --model resnet20 --data cifar10 --seconds 10
  accel-tui race plan.toml --vary xla,precision,batch-size
  accel-tui race plan.toml --json | tail -n 1 | jq .best

\b
Exit status:
  0    at least one configuration was measured
  1    none was
  2    the plan or the command is wrong
  130  interrupted by Ctrl-C, after the results so far
"""


@click.command(cls=PlanCommand, epilog=EPILOG)
@click.argument("plan_file", metavar="[PLAN.toml]", required=False, type=click.Path(path_type=Path))
@takes(RaceOptions, "options")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line; the last one has the results.")
def race(plan_file: Path | None, options: RaceOptions, as_json: bool, **flags: Any) -> int:
    """Measure the configurations of a plan on this machine, and show the fastest.

    Each configuration changes one thing: the devices or the strategy, XLA, the precision, micro-batches,
    rematerialization, threads, CPU kernels or the batch size. Each has processes of its own, which
    compile the plan; they then train in turns of 0.2 s, so that other programs slow all of them alike.
    The changes that were faster are measured together at the end. No run is recorded.

    The plan is read from PLAN.toml (or .json); options override it, as for 'accel-tui train'.
    Ctrl-C stops the race and shows the results so far.
    """
    file = read_plan_file(plan_file) if plan_file else None
    resolved, devices = with_chosen_plan(load(), file, given(flags), _checked)
    require_installation()
    on_terminal = not as_json and sys.stdout.isatty()
    bars = LiveBars(sys.stdout) if on_terminal else None
    show: Show = bars.show if bars else show_json if as_json else StateLines().show
    with interruptible() as interrupted:
        raced = Race(resolved, devices, options, show, interrupted.is_set)
        for warning in filter(None, (*device_warnings(raced.devices), isolation.warning(resolved))):
            print_to_stderr(warning)
        raced.run()
    if bars:
        bars.end()
    if as_json:
        write_json(_ended(raced.results, is_stopped=raced.was_stopped))
    else:
        write("\n".join(race_page(raced.results)))
    return INTERRUPTED if raced.was_stopped else int(not any(each.is_measured for each in raced.results))


def _checked(plan: Plan, devices: Sequence[Device] | None) -> tuple[ResolvedPlan, Sequence[Device]]:
    """Check a plan as a new run's, and that it can be raced.

    Raises:
        AccelError: It does not fit the machine, the data or the model.
    """
    found = detect().devices if devices is None else devices
    resolved = resolved_plan.resolve_to_train(plan, found)
    check_raceable(resolved)
    return resolved, found


def race_page(results: Sequence[ConfigurationResult], *, with_command: bool = True) -> list[str]:
    """The table, what it means, the verdict, and the command that trains the fastest configuration."""
    page = results_page(results)
    if not any(each.is_measured for each in results):
        return ["", "Nothing was measured.", *page]
    best = race_text.best_of(results)
    lines = ["", *page, "", race_text.verdict(results)]
    return [*lines, f"Train it: {best.configuration.plan.command()}"] if best and with_command else lines


def _ended(results: Sequence[ConfigurationResult], *, is_stopped: bool) -> dict[str, Any]:
    marks = {mark.value.replace(" ", "_"): result.title for mark, result in find_best(results).items()}
    best = find_best(results).get(Best.FASTEST)
    described = configuration_values(best) if best else {}
    return {
        "event": "race_ended",
        "best": {
            **{name: described[name] for name in ("configuration", "plan", "options", "examples_per_second", "speed")},
            "command": best.configuration.plan.command(),
        }
        if best
        else None,
        "marks": marks,
        "stopped": is_stopped,
        "configurations": [configuration_values(each) for each in results],
    }


race.params[1:1] = [plan_option(name, default=DEFAULTS[name]) for name in SPECS]
