"""The summary of a plan next to the form, without widgets."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from accel_engine.data.changes import remarks
from accel_engine.data.pixel_scaling import Scaling, choose_scaling
from accel_engine.models import ModelEntry
from accel_engine.plan import affecting
from accel_engine.plan.disk_estimate import estimate_disk
from accel_engine.plan.placement import Placement
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.plan.step_counts import StepCounts, tpu_advice
from accel_engine.requests.describe_model import Description
from accel_engine.text import printable_line
from accel_engine.words import numbers
from accel_tui.plan import data_text
from accel_tui.plan.data_text import DATA_FIELDS, PreviewRow
from accel_tui.plan.field_labels import word
from accel_tui.plan.search_fields import looks_like_range


def rows(filled: ResolvedPlan, description: Description | None, pending: str) -> tuple[PreviewRow, ...]:
    """Return the summary of a form.

    Args:
        filled: The form.
        description: The model, once an engine has inspected it.
        pending: The text for unknown values until then.
    """
    return (
        *_blank_on_error(filled, _MODEL, _model(filled, description, pending)),
        *_blank_on_error(filled, _DATA, _data(filled)),
        *_blank_on_error(filled, _MODEL | {"scale"}, _scaling(filled, description, pending)),
        *_blank_on_error(filled, _STEPS, _steps(filled)),
        *_blank_on_error(filled, _MEMORY, _memory(filled, description, pending)),
        *_blank_on_error(filled, {"precision", "strategy"}, _precision(filled)),
    )


_DATA = {"data", *DATA_FIELDS}
_MODEL = {"model", *_DATA}
_STEPS = _MODEL | affecting("steps")
_MEMORY = _STEPS | affecting("memory")


def _blank_on_error(filled: ResolvedPlan, fields: AbstractSet[str], rows: list[PreviewRow]) -> list[PreviewRow]:
    """Blank the values of rows that depend on an invalid field."""
    return [PreviewRow(row.name, "—") for row in rows] if fields & filled.errors.keys() else rows


OUTCOME = ("scaling", "precision", "memory")
"""The rows that tell what will happen; the others belong to a field."""


def field_notes(filled: ResolvedPlan, known: Sequence[PreviewRow]) -> dict[str, str]:
    """Notes on the values of the fields that are always shown, in a few words each.

    Args:
        filled: The form.
        known: Its rows.
    """
    rows = {row.name: row.text for row in known if row.text != "—"}
    is_auto = filled.plan.model.lower() == "auto" and isinstance(filled.model, ModelEntry)
    taken = f"{filled.model.name}: " if is_auto and isinstance(filled.model, ModelEntry) else ""
    found = {
        "data": rows.get("input", ""),
        "target": rows.get("target", ""),
        "model": f"{taken}{rows['parameters']}" if "parameters" in rows else "",
        "epochs": rows.get("steps", ""),
        "batch_size": ", ".join(filter(None, (rows.get("batch"), _last(rows)))),
        "learning_rate": "of the model or the optimizer" if filled.plan.learning_rate is None else "",
        "strategy": filled.strategy.summary.partition(":")[0],
    }
    return {name: text for name, text in found.items() if name not in filled.errors}


def _last(rows: Mapping[str, str]) -> str:
    """A note on the last batch of an epoch, or on the examples that are left out."""
    if "last batch" in rows:
        return f"last {rows['last batch'].partition(' ')[0]}"
    return f"drops {rows['dropped'].partition(' ')[0]}" if "dropped" in rows else ""


def file_rows(filled: ResolvedPlan, description: Description | None) -> tuple[PreviewRow, ...]:
    """The files that the run writes, and about how much."""
    plan, counts = filled.plan, filled.step_counts
    size = ""
    if description and not description.problem and counts and not filled.errors:
        needed = estimate_disk(plan, counts.total_steps, description.parameters, description.trainable)
        size = f"≈ {numbers.size(needed)}, "
    return (PreviewRow("files", f"{size}{numbers.counted(plan.keep_checkpoints, 'checkpoint')}"),)


def warnings(filled: ResolvedPlan, description: Description | None) -> tuple[str, ...]:
    """Return warnings about a plan before it is started."""
    found = []
    plan, counts = filled.plan, filled.step_counts
    if looks_like_range(plan.name):
        found.append(f"the name {printable_line(plan.name)} looks like a range: type it in the field that is to vary")
    if description and description.problem:
        found.append(description.problem)
    if (scaling := _resolve_scaling(filled, description)) and scaling.note:
        found.append(word(scaling.note))
    found += remarks(filled.data.notes, filled.data.changes)
    examples = filled.data.examples
    if counts and examples is not None and examples < plan.batch_size:
        found.append(f"batch size {plan.batch_size} is larger than the data: the global batch is {counts.global_batch}")
    elif counts and plan.batch_size != counts.global_batch:
        found.append(
            f"batch size {plan.batch_size} is not divisible by {counts.replicas} replicas: "
            f"the global batch is {counts.global_batch}"
        )
    if counts and filled.strategy.kind == "tpu":
        found += filter(None, [tpu_advice(counts, filled.data.examples or 0)])
    if description:
        from accel_engine.run.directory.disk_space import (
            shortage,  # the first frame, without a description, does not need these
        )
        from accel_engine.run.directory.run_paths import runs_directory
        from accel_tui.plan import memory_text

        if training := memory_text.training_of(filled, description):
            found += filter(None, [memory_text.memory_shortage(training)])
        steps = counts.total_steps if counts else 0
        needed = estimate_disk(plan, steps, description.parameters, description.trainable)
        found += filter(None, [shortage(runs_directory(), needed)])
    if counts and counts.passes > 1:
        found.append(f"each epoch uses the data {counts.passes:.3g} times")
    return tuple(found)


def _model(filled: ResolvedPlan, description: Description | None, pending: str) -> list[PreviewRow]:
    if filled.is_sized_by_data:  # the form does not run the user's code, nor read all of the data
        return [PreviewRow("parameters", "known once the data is read", pending=True)]
    if description is None:
        return [PreviewRow("parameters", pending, pending=True)]
    if description.problem:
        return [PreviewRow("parameters", "—")]
    layers = numbers.counted(description.layers, "layer")
    return [PreviewRow("parameters", f"{numbers.count(description.parameters)} in {layers}")]


def _data(filled: ResolvedPlan) -> list[PreviewRow]:
    """The rows on the data."""
    entry = filled.data
    reading = "known once the data is read" if entry.needs_engine else "reading the data…"
    text = data_text.structure(entry)
    return [PreviewRow("input", text or reading, pending=not text), *data_text.data_rows(entry)]


def _scaling(filled: ResolvedPlan, description: Description | None, pending: str) -> list[PreviewRow]:
    if filled.data.kind not in ("images", "arrays") or filled.data.needs_engine:
        return []  # tables and texts are not scaled
    scaling = _resolve_scaling(filled, description)
    return [PreviewRow("scaling", scaling.text) if scaling else PreviewRow("scaling", pending, pending=True)]


def _resolve_scaling(filled: ResolvedPlan, description: Description | None) -> Scaling | None:
    """The scaling of the inputs; ``None`` while unknown or invalid."""
    values, model = filled.data.value_range, filled.model
    known = description is not None or (isinstance(model, ModelEntry) and not model.preprocesses)
    if values is None or "scale" in filled.errors or (values.pixels and filled.plan.scale == "auto" and not known):
        return None
    return choose_scaling(filled.plan.scale, values, description.preprocessing if description else "")


def _steps(filled: ResolvedPlan) -> list[PreviewRow]:
    counts, entry = filled.step_counts, filled.data
    if entry.examples is None or filled.placement is None:
        return [PreviewRow(name, "—") for name in ("examples", "steps", "batch")]
    examples = PreviewRow("examples", data_text.splits(entry))
    if counts is None:
        batch = f"{filled.plan.batch_size} over the cores of {filled.placement.remote_tpu or 'the TPU'}"
        return [
            examples,
            PreviewRow("steps", "known after connecting"),
            PreviewRow("batch", batch),
        ]
    micro_batches = filled.plan.micro_batches or 1
    micro_batch = f", {counts.per_replica_batch // micro_batches} per micro-batch" if micro_batches > 1 else ""
    return [
        examples,
        *_last_batch(counts),
        PreviewRow(
            "steps", f"{numbers.count(counts.steps_per_epoch)} per epoch, {numbers.count(counts.total_steps)} total"
        ),
        PreviewRow("batch", f"{counts.per_replica_batch} on {_device_text(filled.placement)}{micro_batch}"),
    ]


def _last_batch(counts: StepCounts) -> list[PreviewRow]:
    """The last, smaller batch of a pass over the data, and the examples that are left out."""
    last, dropped = counts.last_batch, counts.dropped_examples
    return [
        *([PreviewRow("last batch", numbers.counted(last, "example"))] if last else []),
        *([PreviewRow("dropped", f"{numbers.counted(dropped, 'example')} per epoch")] if dropped else []),
    ]


def _device_text(placement: Placement) -> str:
    devices = placement.devices[0] if len(placement.devices) == 1 else f"each of {', '.join(placement.devices)}"
    if placement.replicas_per_device > 1:
        devices = f"each of {placement.replicas_per_device} cores of {devices}"
    return devices if placement.workers == 1 else f"{devices} of each of {placement.workers} workers"


def _precision(filled: ResolvedPlan) -> list[PreviewRow]:
    """The numeric precision, unless it is float32."""
    policy = filled.plan.policy
    return [] if policy == "float32" else [PreviewRow("precision", policy)]


def _memory(filled: ResolvedPlan, description: Description | None, pending: str) -> list[PreviewRow]:
    if filled.is_sized_by_data:
        return []
    if description is None:
        return [PreviewRow("memory", pending, pending=True)]
    from accel_tui.plan import memory_text  # as above

    training = memory_text.training_of(filled, description)
    return [PreviewRow("memory", memory_text.memory_line(training) if training else "—")]
