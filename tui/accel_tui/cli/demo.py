"""``accel-tui demo``: a guided race of the same model on this machine's devices and strategies."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import click

from accel_engine.devices import detect
from accel_engine.devices.device_types import Device
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve_to_train
from accel_engine.process.engine_process import require_installation
from accel_engine.race.configuration import ConfigurationKind, ConfigurationResult, ConfigurationState
from accel_engine.race.race import Race, RaceOptions
from accel_tui.cli.options import FiniteNumber
from accel_tui.cli.output import paragraph, print_to_stderr, write, write_json
from accel_tui.cli.race import LiveBars, StateLines, configuration_values, exit_status, race_page
from accel_tui.cli.signals import interruptible
from accel_tui.formatting.runs import device_warnings

EPILOG = """\b
Examples:
  accel-tui demo
  accel-tui demo --seconds 30
  accel-tui demo --json | jq -s 'map({configuration, speedup})'
"""

KINDS = (ConfigurationKind.DEVICES, ConfigurationKind.XLA, ConfigurationKind.PRECISION, ConfigurationKind.THREADS)
"""The kinds of changes: all that concern the devices."""

START_SECONDS = 8.0
"""About how long it takes until a configuration is compiled."""

CLEARLY_SLOWER = 0.95
"""The share of the first configuration's rate below which a configuration is called slower."""

_CPU_PLAN = Plan(model="mlp", data="synthetic:28x28x1:100:20000", batch_size=256, xla="off")
_ACCELERATOR_PLAN = Plan(model="resnet20", data="synthetic:32x32x3:10:20000", batch_size=256, xla="off")

_DRAWBACKS = {
    ConfigurationKind.DEVICES: "replicas on one CPU share its cores, so only the cost of the strategy shows",
    ConfigurationKind.XLA: "on a CPU its large operations are slower than oneDNN's",
    ConfigurationKind.PRECISION: "a processor without bfloat16 instructions converts every value",
    ConfigurationKind.THREADS: "few operations of this model can run side by side",
}
"""Why a configuration can be slower on a CPU."""


@click.command(epilog=EPILOG)
@click.option(
    "--seconds", metavar="X", type=FiniteNumber(min=1), default=120.0, help="Approximate duration.  [default: 120]"
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
    resolved = resolve_to_train(_ACCELERATOR_PLAN if is_accelerated else _CPU_PLAN, devices)
    bars = LiveBars(sys.stdout) if not as_json and sys.stdout.isatty() else None
    show = bars.show if bars else (lambda _: None) if as_json else StateLines().show
    with interruptible() as interrupted:
        raced = Race(resolved, devices, RaceOptions(kinds=KINDS), show, interrupted.is_set)
        print_to_stderr(*device_warnings(raced.devices, can_choose=False))
        configurations = sum(each.state is not ConfigurationState.REFUSED for each in raced.results)
        raced.set_seconds(
            max(
                (seconds - START_SECONDS * (configurations + 1)) / (configurations + 1),
                min(1.0, seconds / configurations),
            )
        )
        if not as_json:
            write("\n".join(_announcement(resolved.plan, devices, configurations, seconds)))
        raced.run()
    if bars:
        bars.end()
    if as_json:
        write_json(*map(_values, (each for each in raced.results if each.state is not ConfigurationState.REFUSED)))
    else:
        write(
            "\n".join(
                [
                    *race_page(raced.results, with_command=False),
                    *_drawbacks(raced.results, is_accelerated=is_accelerated),
                ]
            )
        )
    return exit_status(raced)


def _announcement(plan: Plan, devices: Sequence[Device], configurations: int, seconds: float) -> Iterator[str]:
    yield paragraph(
        f"Training {plan.model} on {plan.data.partition(':')[0]} images, batch size {plan.batch_size}, in "
        f"{configurations} configurations for about {seconds:.0f} s in total. Each is compiled in its own process; "
        "then all of them take turns."
    )
    if all(device.kind == "cpu" for device in devices):
        yield paragraph("No GPU or TPU was found (accel-tui doctor gives the cause): all configurations use the CPU.")
    yield "Press Ctrl-C to stop and show the results so far.\n"


def _drawbacks(results: Sequence[ConfigurationResult], *, is_accelerated: bool) -> Iterator[str]:
    """Why configurations can be slower than the first one on a CPU, a line for each that was."""
    for each in () if is_accelerated else results:
        compared = each.against_reference
        if compared and compared.value < CLEARLY_SLOWER and len(each.configuration.kinds) == 1:
            yield paragraph(f"{each.title} can be slower: {_DRAWBACKS[each.configuration.kinds[0]]}.")


def _values(result: ConfigurationResult) -> dict[str, Any]:
    known = configuration_values(result)
    rate, batch = result.examples_per_second, result.configuration.plan.batch_size
    return {
        "steps_per_second": None if rate is None else rate / batch,
        "speedup": known["speed"],
        "problem": result.reason if result.state is ConfigurationState.FAILED else "",
        **known,
        "plan": result.configuration.plan.changed(),
    }
