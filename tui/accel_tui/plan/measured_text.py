"""What a race has measured of a plan, as text: for the form and the command."""

from accel_engine import clock
from accel_engine.plan.changed_plan import options_text
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.race.remembered import RememberedResult
from accel_engine.words import numbers
from accel_tui.formatting.race import spread_of
from accel_tui.plan.data_look import PreviewRow


def measured_rows(found: RememberedResult | None, resolved: ResolvedPlan) -> tuple[PreviewRow, ...]:
    """What was measured of a plan on this machine; nothing without a race.

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
