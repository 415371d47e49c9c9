"""``accel-tui estimate``: shows the steps, the parameters and the memory of a plan without training it."""

from collections.abc import Iterator, Sequence
from typing import Any

import click

from accel_engine.devices.device_types import Device
from accel_engine.errors import FieldValue
from accel_engine.plan import Plan, resolved_plan
from accel_engine.plan.memory_estimate import MemoryEstimate, Training, estimate_memory
from accel_engine.plan.memory_remedies import PlanChange, cheapest_change
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.plan.step_counts import count_steps
from accel_engine.process.engine_call import ask
from accel_engine.process.engine_process import require_installation
from accel_engine.race.remembered_races import RememberedResult, remembered_result
from accel_engine.requests.describe_model import Description, ModelRequest
from accel_tui.cli.chosen_plan import plan_file_or_run, with_chosen_plan
from accel_tui.cli.output import table, write, write_json
from accel_tui.cli.plan_options import PlanCommand, given
from accel_tui.plan import measured_text, memory_text, plan_preview
from accel_tui.settings.user_settings import load_settings

EPILOG = """\b
Examples:
  accel-tui estimate --model resnet20 --data cifar10 --batch-size 512
  accel-tui estimate plan.toml --micro-batches 4
  accel-tui estimate last --json | jq .parts

\b
Exit status:
  0  the estimate is shown, whether the plan fits or not
  1  the model cannot be built, or the data cannot be read
  2  the plan or the command is wrong
"""


@click.command(cls=PlanCommand, epilog=EPILOG)
@click.argument("plan_or_run", metavar="[PLAN.toml | RUN]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def estimate(plan_or_run: str | None, as_json: bool, **flags: Any) -> None:
    """Show the steps, the parameters and the memory of a plan without training it.

    The plan is read from PLAN.toml (or .json), or from RUN; options override it, as for
    'accel-tui train'. The model is built without being trained, which first imports TensorFlow.

    Memory is a range, from measurements on CPUs. Where a plan may not fit, the cheapest change that
    fits is shown: micro-batches, a mixed precision (not on a CPU) or a smaller batch size.
    """
    chosen = given(flags)
    resolved, description, measured = with_chosen_plan(
        load_settings(), plan_file_or_run(plan_or_run, chosen), chosen, _describe
    )
    training = memory_text.training_of(resolved, description)
    if as_json:
        write_json(_object(resolved, description, measured, training))
    else:
        write("\n".join(_page(resolved, description, measured, training)))


def _describe(plan: Plan, devices: Sequence[Device]) -> tuple[ResolvedPlan, Description, RememberedResult | None]:
    """Check a plan as a new run's, have an engine describe its model, and recall what a race has measured of it.

    Raises:
        AccelError: The plan does not fit the machine, the data or the model, or TensorFlow is missing.
    """
    resolved = resolved_plan.resolve_to_train(plan, devices)
    require_installation()
    description = ask(ModelRequest(resolved.with_chosen_model().plan))
    replicas = resolved.placement.replicas if resolved.placement else None
    if resolved.step_counts is None and description.examples is not None and replicas is not None:
        resolved = resolved.with_step_counts(count_steps(plan, description.examples, replicas))
    return resolved, description, remembered_result(resolved, devices)


def _page(
    resolved: ResolvedPlan, description: Description, measured: RememberedResult | None, training: Training | None
) -> Iterator[str]:
    rows = [row for row in plan_preview.rows(resolved, description, "unknown") if row.name != "memory"]
    rows += measured_text.measured_rows(measured, resolved)
    width = max(len(row.name) for row in rows)
    yield f"{resolved.plan.title}"
    yield ""
    yield from (f"{row.name:<{width}}  {row.text}" for row in rows)
    if training is None:
        yield "\nThe memory is known once the devices are connected and the data is read."
        return
    found = estimate_memory(training)
    yield ""
    yield table(("MEMORY", "BYTES"), [*((part.name, memory_text.bytes_text(part)) for part in found.parts)])
    yield ""
    yield f"{memory_text.memory_line(training)}{_verdict(training)}"
    if found.left_out:
        yield f"Without {found.left_out}."
    if training.rematerializes and training.plan.remat == "auto":
        yield "With rematerialization: --remat auto computes parts of the model again, as a step may not fit otherwise."


def _verdict(training: Training) -> str:
    if training.memory is None:
        return "; the memory of the device is unknown"
    if short := memory_text.memory_shortage(training, labels=False):
        return f"\n{short}"
    return f" of {memory_text.available_memory_text(training)}: fits"


def _object(
    resolved: ResolvedPlan, description: Description, measured: RememberedResult | None, training: Training | None
) -> dict[str, Any]:
    counts, plan = resolved.step_counts, resolved.plan
    return {
        "model": plan.model,
        "data": plan.data,
        "parameters": description.parameters,
        "trainable": description.trainable,
        "layers": description.layers,
        "replicas": counts.replicas if counts else None,
        "per_replica_batch": counts.per_replica_batch if counts else None,
        "steps_per_epoch": (counts.steps_per_epoch or None) if counts else None,
        "total_steps": (counts.total_steps or None) if counts else None,
        "memory": _memory(training) if training else None,
        "measured": _measured(resolved, measured) if measured else None,
    }


def _measured(resolved: ResolvedPlan, found: RememberedResult) -> dict[str, Any]:
    return {
        "examples_per_second": found.examples_per_second,
        "between": found.between,
        "memory": found.memory,
        "memory_of": found.memory_of,
        "measured_at": found.measured_at,
        "epoch_seconds": found.epoch_seconds(resolved),
        "faster": {"plan": dict(found.faster_changes), "speed": found.factor} if found.faster_changes else None,
    }


def _memory(training: Training) -> dict[str, Any]:
    found = estimate_memory(training)
    fits = None if training.memory is None else found.fits(training.memory)
    change = None if fits or training.memory is None else cheapest_change(training)
    return {
        **_range(found),
        "parts": [{"name": part.name, "low": part.low, "high": part.high} for part in found.parts],
        "left_out": found.left_out,
        "rematerializes": training.rematerializes,
        "device": training.kind,
        "available": training.memory,
        "fits": fits,
        "cheapest_change": _change(change) if change else None,
    }


def _range(found: MemoryEstimate) -> dict[str, int]:
    return {"low": found.low, "high": found.high}


def _change(change: PlanChange) -> dict[str, Any]:
    options = " ".join(str(FieldValue(name, str(value))) for name, value in change.values.items())
    return {"plan": dict(change.values), "options": options, **_range(change.estimate)}
