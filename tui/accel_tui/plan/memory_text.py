"""The estimate of a plan's memory as text, the same on every screen and in every command."""

from accel_engine.errors import join_words
from accel_engine.memory import available_memory
from accel_engine.plan.memory_estimate import MemoryEstimate, MemoryPart, Training, data_bytes, estimate_memory
from accel_engine.plan.memory_remedies import PlanChange, cheapest_change
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.requests.describe_model import Description
from accel_engine.words import numbers
from accel_tui.plan.field_labels import word


def training_of(filled: ResolvedPlan, description: Description) -> Training | None:
    """The training of a plan, with the memory of its devices; ``None`` while its batches are unknown.

    Args:
        filled: The plan.
        description: Its model.
    """
    counts, placement = filled.step_counts, filled.placement
    if counts is None or placement is None or description.problem:
        return None
    data = data_bytes(filled.data)
    return Training(
        plan=filled.plan,
        size=description,
        per_replica_batch=counts.per_replica_batch,
        placement=placement,
        data=(description.data_bytes if data is None else data) or 0,
        memory=available_memory() if placement.kind == "cpu" else placement.device_memory,
        accelerators=tuple(each.id for each in filled.devices or () if each.kind == "gpu" == placement.kind),
    )


def bytes_text(part: MemoryPart | MemoryEstimate) -> str:
    """A range of bytes: ``610 MiB to 740 MiB``; one figure where both are the same."""
    low, high = numbers.size(part.low), numbers.size(part.high)
    return low if low == high else f"{low} to {high}"


def memory_line(training: Training) -> str:
    """The memory of a training in a line: ``610 MiB to 740 MiB``, of each device if there are several accelerators."""
    several = " per device" if training.kind != "cpu" and len(training.placement.devices) != 1 else ""
    return f"{bytes_text(estimate_memory(training))}{several}"


def memory_shares(training: Training) -> tuple[float, float] | None:
    """The parts of the memory that a training surely takes, and may take; ``None`` if the memory is unknown."""
    if not training.memory:
        return None
    estimate = estimate_memory(training)
    return estimate.low / training.memory, estimate.high / training.memory


def available_memory_text(training: Training) -> str:
    """The memory that a training may use: ``22.1 GiB available on this machine``; empty if it is unknown."""
    if training.memory is None:
        return ""
    where = "available on this machine" if training.kind == "cpu" else f"of {training.placement.devices[0]}"
    return f"{numbers.size(training.memory)} {where}"


def memory_shortage(training: Training, *, labels: bool = True) -> str:
    """Why a training may not fit, and the cheapest change that fits; empty if it fits, or if the memory is unknown.

    Args:
        training: The training.
        labels: Whether fields have the labels of the form, rather than the options of the command line.
    """
    if training.memory is None:
        return ""
    estimate = estimate_memory(training)
    fits = estimate.fits(training.memory)
    if fits:
        return ""
    verb = "does not fit" if fits is False else "may not fit"
    advice = _advice(cheapest_change(training), labels)
    return f"{bytes_text(estimate)} {verb} in the {available_memory_text(training)}: {advice}"


def _advice(change: PlanChange | None, labels: bool) -> str:
    if change is None:
        return "no change of the batch, its micro-batches, rematerialization or the precision is known to fit"
    words = word(change.words) if labels else join_words(change.words)
    return f"{words} fits ({bytes_text(change.estimate)})"
