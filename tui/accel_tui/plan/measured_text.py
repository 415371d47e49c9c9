"""Measurements of a plan's devices on this machine, or their lack, as text: for the form and the command."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from accel_engine import clock
from accel_engine.devices.device_types import Device
from accel_engine.measure.tried_gpus import untried
from accel_engine.plan import DEFAULTS, affecting
from accel_engine.plan.changed_plan import options_text
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.race.remembered_races import RememberedResult
from accel_engine.run import RunSummary
from accel_engine.run.runs.listing import start_seconds
from accel_engine.words import numbers
from accel_tui.formatting.race import spread_of
from accel_tui.plan.data_text import PreviewRow


def first_use_rows(resolved: ResolvedPlan, devices: Sequence[Device]) -> tuple[PreviewRow, ...]:
    """A row on the first use of a GPU on which nothing was computed here yet; nothing otherwise."""
    placed = resolved.placement.devices if resolved.placement else ()
    names = [device.name for device in devices if device.kind == "gpu" and device.id in placed]
    if not (new := untried(names)):
        return ()
    return (PreviewRow("first use", f"of {', '.join(new)} here: accel-tui doctor --deep tries it in a minute"),)


def earlier_rows(runs: Iterable[RunSummary], resolved: ResolvedPlan) -> tuple[PreviewRow, ...]:
    """About how long a plan takes, by the newest run whose steps were the same; nothing without one. Reads its file.

    Args:
        runs: Runs, newest first.
        resolved: The plan.
    """
    counts = resolved.step_counts
    if counts is None or resolved.errors:
        return ()
    wanted = _speed_of(resolved.with_chosen_model().plan.to_mapping())
    for run in runs:
        if run.info and run.steps and run.seconds and not run.info.bench and _speed_of(run.info.plan_values) == wanted:
            start = start_seconds(run.directory)
            trained = run.seconds - start if 0 < start < run.seconds else run.seconds
            seconds = trained / run.steps * counts.total_steps
            before = f" after {numbers.span(start)} to start" if trained < run.seconds else ""
            took = f"{run.id} took {numbers.span(trained)} for {run.steps:,} steps"
            return (PreviewRow("time", f"about {numbers.span(seconds)}{before}: {took}"),)
    return ()


def _speed_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values on which the time of a step depends."""
    return {name: values.get(name, DEFAULTS[name]) for name in affecting("speed")}


def measured_rows(found: RememberedResult | None, resolved: ResolvedPlan) -> tuple[PreviewRow, ...]:
    """The measurements of a plan on this machine; none without a race.

    Args:
        found: What was measured.
        resolved: The plan, placed on devices.
    """
    if found is None:
        return ()
    memory = f", {numbers.size(found.memory)}" if found.memory is not None else ""
    age = numbers.ago(max(clock.now() - found.measured_at, 0.0))
    rate, spread = numbers.count(round(found.examples_per_second)), spread_of(found.examples_per_second, found.between)
    rows = [PreviewRow("measured", f"{' '.join(filter(None, (rate, spread)))} examples/s{memory} (race, {age})")]
    if (seconds := found.epoch_seconds(resolved)) is not None:
        rows.append(PreviewRow("an epoch", f"{numbers.span(seconds)} of steps"))
    if found.faster_changes:
        text = f"{options_text(found.faster_changes)}: {found.factor:.2f} times as fast in the race"
        rows.append(PreviewRow("faster", text))
    return tuple(rows)
