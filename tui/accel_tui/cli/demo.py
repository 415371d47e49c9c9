"""``accel-tui demo``: a guided race of the same model on this machine's devices and strategies."""

import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import click

from accel_engine.devices import detect
from accel_engine.devices.device_types import Device
from accel_engine.launch.engine_process import require_installation
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import check
from accel_engine.race.race import Race, RaceOptions
from accel_engine.race.way import WayKind
from accel_engine.race.way_result import WayResult, WayState
from accel_tui.cli.finite_number import FiniteNumber
from accel_tui.cli.output import write, write_json
from accel_tui.cli.race import page
from accel_tui.cli.race_view import LiveBars, show_line, values
from accel_tui.cli.signals import INTERRUPTED, interruptible

EPILOG = """\b
Examples:
  accel-tui demo
  accel-tui demo --seconds 30
  accel-tui demo --json | jq -s 'map({act, speedup})'
"""

KINDS = (WayKind.DEVICES, WayKind.XLA, WayKind.PRECISION, WayKind.THREADS)
"""What changes: what is about the devices."""

START_SECONDS = 8.0
"""About how long it takes until a way is compiled."""

CLEARLY_SLOWER = 0.95
"""The share of the first way's rate below which a way is called slower."""

_CPU_PLAN = Plan(model="mlp", data="synthetic:28x28x1:100:20000", batch_size=256, xla="off")
_ACCELERATOR_PLAN = Plan(model="resnet20", data="synthetic:32x32x3:10:20000", batch_size=256, xla="off")

_DRAWBACKS = {
    WayKind.DEVICES: "replicas on one CPU share its cores, so only the cost of the strategy shows",
    WayKind.XLA: "on a CPU its large operations are slower than oneDNN's",
    WayKind.PRECISION: "a processor without bfloat16 instructions converts every value",
    WayKind.THREADS: "few operations of this model can run side by side",
}
"""Why a way can be slower on a CPU."""


@click.command(epilog=EPILOG)
@click.option(
    "--seconds",
    metavar="X",
    type=FiniteNumber(min=1),
    default=120.0,
    help="Approximate duration.  [default: 120]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per configuration.")
def demo(seconds: float, as_json: bool) -> int:
    """Measure the speed-up of this machine's devices and strategies in about two minutes.

    The same model is trained on each available device and strategy, in turns: it is a race ('accel-tui race
    --help') whose plan is given. Bars compare the examples per second. Ctrl-C stops the demo and shows the
    results so far. No run is recorded.
    """
    require_installation()
    devices = detect().devices
    is_accelerated = any(device.kind == "gpu" for device in devices)
    resolved = check(_ACCELERATOR_PLAN if is_accelerated else _CPU_PLAN, devices)
    bars = LiveBars(sys.stdout) if not as_json and sys.stdout.isatty() else None
    show = bars.show if bars else (lambda _: None) if as_json else show_line
    with interruptible() as interrupted:
        raced = Race(resolved, devices, RaceOptions(kinds=KINDS), show, interrupted.is_set)
        ways = sum(each.state is not WayState.REFUSED for each in raced.results)
        raced.set_seconds(max((seconds - START_SECONDS * (ways + 1)) / (ways + 1), min(1.0, seconds / ways)))
        if not as_json:
            write("\n".join(_announcement(resolved.plan, devices, ways, seconds)))
        raced.run()
    if bars:
        bars.draw()
    if as_json:
        write_json(*map(_values, (each for each in raced.results if each.state is not WayState.REFUSED)))
    else:
        write(
            "\n".join(
                [*page(raced.results, with_command=False), *_drawbacks(raced.results, is_accelerated=is_accelerated)]
            )
        )
    return INTERRUPTED if raced.was_stopped else int(not any(each.is_measured for each in raced.results))


def _announcement(plan: Plan, devices: Sequence[Device], ways: int, seconds: float) -> Iterator[str]:
    yield _filled(
        f"Training {plan.model} on {plan.data.partition(':')[0]} images, batch size {plan.batch_size}, in "
        f"{ways} configurations for about {seconds:.0f} s in total. Each is compiled in a process of its own; then "
        "all of them take turns."
    )
    if all(device.kind == "cpu" for device in devices):
        yield _filled("No GPU or TPU was found (accel-tui doctor gives the cause): all configurations use the CPU.")
    yield "Press Ctrl-C to stop and show the results so far.\n"


def _drawbacks(results: Sequence[WayResult], *, is_accelerated: bool) -> Iterator[str]:
    """Why ways can be slower than the first one on a CPU, a line for each that was."""
    for each in () if is_accelerated else results:
        compared = each.against_reference
        if compared and compared.value < CLEARLY_SLOWER and len(each.way.kinds) == 1:
            yield _filled(f"{each.title} can be slower: {_DRAWBACKS[each.way.kinds[0]]}.")


def _values(result: WayResult) -> dict[str, Any]:
    known = values(result)
    rate, batch = result.examples_per_second, result.way.plan.batch_size
    return {
        "act": result.title,
        "steps_per_second": None if rate is None else rate / batch,
        "speedup": known["speed"],
        "problem": result.reason if result.state is WayState.FAILED else "",
        **known,
        "plan": result.way.plan.changed(),
    }


def _filled(text: str) -> str:
    return textwrap.fill(text, min(shutil.get_terminal_size((80, 24)).columns, 120))
