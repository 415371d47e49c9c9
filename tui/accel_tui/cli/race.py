"""``accel-tui race``: measures the configurations of a plan on this machine side by side."""

import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

import click
from rich.text import Text

from accel_engine.devices.device_types import Device
from accel_engine.places import PlaceName, PlaceRequest
from accel_engine.plan import Plan, isolation, resolved_plan
from accel_engine.plan.plan_file import read_plan_file
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.process.engine_process import require_installation
from accel_engine.race.comparison import find_best
from accel_engine.race.configuration import Best, ConfigurationResult, ConfigurationState
from accel_engine.race.configurations import check_raceable
from accel_engine.race.race import Race, RaceOptions
from accel_engine.text import printable_line
from accel_engine.words import numbers
from accel_tui.appearance.glyphs import to_ascii
from accel_tui.cli.chosen_plan import with_chosen_plan
from accel_tui.cli.live import LiveArea, Size
from accel_tui.cli.options import takes
from accel_tui.cli.output import paragraph, print_to_stderr, table, write, write_json
from accel_tui.cli.plan_options import PlanCommand, given
from accel_tui.cli.signals import INTERRUPTED, interruptible
from accel_tui.cli.train import ON_PLACE, asked_of
from accel_tui.formatting import race as race_text
from accel_tui.formatting.runs import device_warnings
from accel_tui.settings.user_settings import load_settings

EPILOG = """\b
Examples:
  accel-tui race
  accel-tui race --model resnet20 --data cifar10 --seconds 10
  accel-tui race plan.toml --vary xla,precision,batch-size
  accel-tui race plan.toml --on slurm:gpu --gpus 1
  accel-tui race plan.toml --json | tail -n 1 | jq .best

\b
Exit status:
  0    at least one configuration was measured
  1    none was
  2    the plan or the command is wrong
  130  interrupted by Ctrl-C, after the results so far
"""


REDRAW_SECONDS = 0.1
"""Seconds between two pictures of the bars, at least."""

_COLOURS = {"success": "green", "primary": "cyan", "note": "bright_black", "error": "red"}
"""Colours of a terminal for colours of a theme."""

_WITHOUT_LINE = (ConfigurationState.WAITING, ConfigurationState.MEASURING, ConfigurationState.NOT_MEASURED)
"""States without a line while a race runs; the page at the end lists what is not measured."""

Show = Callable[[ConfigurationResult], object]
"""Shows the result of a configuration that has changed."""


@click.command(cls=PlanCommand, epilog=EPILOG)
@click.argument("plan_file", metavar="[PLAN.toml]", required=False, type=click.Path(path_type=Path))
@takes(RaceOptions, "options")
@ON_PLACE
@takes(PlaceRequest, "asked", without=("write",), if_given=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line; the last one has the results.")
def race(
    plan_file: Path | None,
    options: RaceOptions,
    place: PlaceName | None,
    asked: Mapping[str, Any],
    as_json: bool,
    **flags: Any,
) -> int:
    """Measure the configurations of a plan on this machine, and show the fastest.

    Each configuration changes one thing: the devices or the strategy, XLA, the precision, micro-batches,
    rematerialization, threads, layer kernels or the batch size. Each has its own processes, which
    compile the plan; they then train in turns of 0.2 s, so that other programs slow all of them alike.
    The changes that were faster are measured together at the end. No run is recorded.

    The plan is read from PLAN.toml (or .json); options override it, as for 'accel-tui train'.
    Ctrl-C stops the race and shows the results so far.
    With --on, a host or a machine of a cluster is measured.
    """
    if where := asked_of(place, asked):
        from accel_tui.cli.measure_at_place import measure_at_place  # seldom needed

        command, fields = ["race"], given(flags)
        return measure_at_place(where, command, plan_file, fields, options, check_raceable, as_json=as_json)
    file = read_plan_file(plan_file) if plan_file else None
    resolved, devices = with_chosen_plan(load_settings(), file, given(flags), _checked)
    require_installation()
    on_terminal = not as_json and sys.stdout.isatty()
    bars = LiveBars(sys.stdout) if on_terminal else None
    show: Show = bars.show if bars else show_json if as_json else StateLines().show
    with interruptible() as interrupted:
        raced = Race(resolved, devices, options, show, interrupted.is_set)
        print_to_stderr(*filter(None, (*device_warnings(raced.devices), isolation.warning(resolved))))
        raced.run()
    if bars:
        bars.end()
    if as_json:
        write_json(_ended(raced.results, is_stopped=raced.was_stopped))
    else:
        write("\n".join(race_page(raced.results)))
    return exit_status(raced)


def exit_status(raced: Race) -> int:
    """The status for the shell: 1 if nothing was measured."""
    return INTERRUPTED if raced.was_stopped else int(not any(each.is_measured for each in raced.results))


def _checked(plan: Plan, devices: Sequence[Device]) -> tuple[ResolvedPlan, Sequence[Device]]:
    """Check that a plan can be trained as a new run, and raced.

    Raises:
        AccelError: The plan does not fit the machine, the data or the model.
    """
    resolved = resolved_plan.resolve_to_train(plan, devices)
    check_raceable(resolved)
    return resolved, devices


def race_page(results: Sequence[ConfigurationResult], *, with_command: bool = True) -> list[str]:
    """The table, what it means, the verdict, and the command that trains the fastest configuration."""
    page = results_page(results)
    if not any(each.is_measured for each in results):
        return ["", "Nothing was measured.", *page]
    best = race_text.best_of(results)
    lines = ["", *page, "", paragraph(race_text.race_verdict(results))]
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


class LiveBars:
    """Draws bars over those before.

    Args:
        stream: The terminal.
        size: Tells its columns and lines.
        clock: Monotonic seconds.
    """

    def __init__(
        self, stream: TextIO, size: Size = shutil.get_terminal_size, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._live, self._clock = LiveArea(stream, size), clock
        self._results: dict[str, ConfigurationResult] = {}
        self._due = 0.0

    def show(self, result: ConfigurationResult) -> None:
        """Take a result, and draw if that is due, or if it is more than another turn."""
        self._results[result.title] = result
        if result.state is not ConfigurationState.WAITING and (
            result.state is not ConfigurationState.MEASURING or self._clock() >= self._due
        ):
            self._draw()

    def end(self) -> None:
        """Draw all bars for the last time; they stay."""
        self._draw()
        self._live.leave()

    def _draw(self) -> None:
        self._due = self._clock() + REDRAW_SECONDS
        shown = [each for each in self._results.values() if each.state is not ConfigurationState.REFUSED]
        lines = race_text.bars(shown, min(self._live.width, 150))
        self._live.show(Text("\n", no_wrap=True, overflow="crop").join(map(self._painted, lines)))

    def _painted(self, line: Sequence[tuple[str, str]]) -> Text:
        plain = str if self._live.has_unicode else to_ascii
        return Text.assemble(*((plain(text), _COLOURS.get(style, "")) for text, style in line))


class StateLines:
    """Writes a line to standard error when a configuration begins, is compiled or ends."""

    def __init__(self) -> None:
        self._states: dict[str, ConfigurationState] = {}

    def show(self, result: ConfigurationResult) -> None:
        """Write a line, if the state is another one than before."""
        is_new = self._states.get(result.title) is not result.state
        self._states[result.title] = result.state
        if is_new and result.state not in _WITHOUT_LINE:
            _show_line(result)


def _show_line(result: ConfigurationResult) -> None:
    text = race_text.state_text(result)
    if result.state is ConfigurationState.FINISHED and result.examples_per_second is not None:
        text = f"{numbers.compact(result.examples_per_second)} examples/s ({race_text.tolerance_text(result)})"
    print_to_stderr(f"{printable_line(result.title)}: {text}")


def results_page(results: Sequence[ConfigurationResult]) -> list[str]:
    """The table of what was measured, and what it means."""
    header, rows = race_text.table_of(results)
    return [*([table(header, rows), ""] if rows else []), *map(paragraph, race_text.notes_on(results))]


def show_json(result: ConfigurationResult) -> None:
    """Write a JSON object for each change."""
    write_json(
        {
            "event": f"configuration_{result.state.value.replace(' ', '_').replace('measuring', 'measured')}",
            **configuration_values(result),
        }
    )


def configuration_values(result: ConfigurationResult) -> dict[str, Any]:
    """The result of a configuration, in types of JSON."""
    check, compared = result.losses, result.against_reference
    plan = result.configuration.plan.to_mapping()
    return {
        "configuration": result.title,
        "state": result.state.value,
        "reason": result.reason,
        "plan": {name: plan[name] for name in result.configuration.changes},
        "options": result.configuration.options,
        "changes_training": result.configuration.changes_training,
        "examples_per_second": result.examples_per_second,
        "between": result.between,
        "rounds": len(result.rates),
        "speed": compared.value if compared else 1.0 if result.configuration.is_reference and result.rates else None,
        "compile_seconds": result.compile_seconds,
        "memory": result.memory,
        "memory_of": result.memory_of,
        "joules_per_example": result.joules,
        "energy_of": result.energy_of,
        "energy_problem": result.energy_problem,
        "losses": race_text.losses_text(result) or None,
        "loss_difference": check.difference if check else None,
        "loss_steps": check.steps if check else 0,
        **({"learned": asdict(result.learned)} if result.learned else {}),
    }
