"""What a plan would mean, as it is shown beside the form; no widgets."""

from dataclasses import dataclass

from accel_engine import estimate, models, strategies
from accel_engine.data.pixel_scaling import Scaling, choose_scaling
from accel_engine.launch import Description
from accel_engine.models import ModelEntry
from accel_engine.strategies import Placement
from accel_tui.formatting import units
from accel_tui.plan import form
from accel_tui.plan.form import FormResult


@dataclass(frozen=True, slots=True)
class PreviewRow:
    """A line of what a plan means.

    Attributes:
        name: What it is about.
        text: What there is to say.
        pending: Whether the text says only that the answer is to come.
    """

    name: str
    text: str
    pending: bool = False


def facts(filled: FormResult, description: Description | None, pending: str) -> tuple[PreviewRow, ...]:
    """Say what a form comes to.

    Args:
        filled: The form.
        description: The model, once an engine has counted it.
        pending: What to say in its place until then.
    """
    return (
        *_unless(filled, _MODEL, _model(filled, description, pending)),
        *_unless(filled, _MODEL | {"scale"}, _scaling(filled, description, pending)),
        *_unless(filled, _MODEL | _STEPS, _steps(filled)),
        *_unless(filled, _MODEL | _STEPS, _memory(filled, description, pending)),
        *_unless(filled, {"precision", "strategy"}, _precision(filled)),
    )


_MODEL = {"model", "data", "image_size"}
_STEPS = {
    "batch_size",
    "micro_batches",
    "epochs",
    "steps_per_epoch",
    "strategy",
    "devices",
    "virtual_cpus",
    "local_workers",
    "tpu",
    "optimizer",
    "precision",
}


def _unless(filled: FormResult, fields: set[str], said: list[PreviewRow]) -> list[PreviewRow]:
    """Facts without their text while a field is wrong that they depend on."""
    return [PreviewRow(fact.name, "—") for fact in said] if fields & filled.errors.keys() else said


def choices(filled: FormResult) -> tuple[PreviewRow, ...]:
    """What the model, the data and the strategy are that a form names."""
    return tuple(
        PreviewRow(name, form.remark(name, filled))
        for name in ("model", "data", "strategy")
        if name not in filled.errors
    )


def warnings(filled: FormResult, description: Description | None) -> tuple[str, ...]:
    """What the user should know of a plan before it is started."""
    said = []
    plan, counts = filled.plan, filled.step_counts
    if description and description.problem:
        said.append(description.problem)
    if (scaling := _chosen_scaling(filled, description)) and scaling.note:
        said.append(form.on_screen(scaling.note))
    said += filled.entry.notes
    if counts and (rest := plan.batch_size - counts.global_batch):
        said.append(
            f"{plan.batch_size} does not divide by {counts.replicas} replicas: a step takes "
            f"{counts.global_batch} examples, {rest} fewer"
        )
    if counts and strategies.find(plan.strategy).kind == "tpu":
        said += filter(None, [estimate.tpu_advice(counts, filled.entry.examples or 0)])
    if counts and counts.passes > 1:
        said.append(f"an epoch goes over the data {counts.passes:.3g} times")
    return tuple(said)


def _model(filled: FormResult, description: Description | None, pending: str) -> list[PreviewRow]:
    if description is None:
        parameters = PreviewRow("parameters", pending, pending=True)
    elif description.problem:
        parameters = PreviewRow("parameters", "—")
    else:
        parameters = PreviewRow("parameters", f"{units.count(description.parameters)} in {description.layers} layers")
    shape, classes = filled.entry.shape, filled.entry.classes
    if shape is None or classes is None:
        return [parameters, PreviewRow("input", "looking…", pending=True)]
    return [parameters, PreviewRow("input", f"{units.shape(shape)} → {classes} classes")]


def _scaling(filled: FormResult, description: Description | None, pending: str) -> list[PreviewRow]:
    scaling = _chosen_scaling(filled, description)
    return [PreviewRow("scaling", scaling.words) if scaling else PreviewRow("scaling", pending, pending=True)]


def _chosen_scaling(filled: FormResult, description: Description | None) -> Scaling | None:
    """What is done to raw numbers; ``None`` while that is not known, or cannot be."""
    numbers, model = filled.entry.numbers, models.find(filled.plan.model)
    known = description is not None or (isinstance(model, ModelEntry) and not model.preprocesses)
    if numbers is None or "scale" in filled.errors or (numbers.pixels and filled.plan.scale == "auto" and not known):
        return None
    return choose_scaling(filled.plan.scale, numbers, description.preprocessing if description else "")


def _steps(filled: FormResult) -> list[PreviewRow]:
    counts, entry = filled.step_counts, filled.entry
    if entry.examples is None or filled.placement is None:
        return [PreviewRow(name, "—") for name in ("examples", "left out", "steps", "batch")]
    held = f" + {units.count(entry.validation_examples)} held out" if entry.validation_examples else ""
    examples = PreviewRow("examples", units.count(entry.examples) + held)
    if counts is None:
        share = f"{filled.plan.batch_size} shared by the cores of {filled.placement.remote_tpu or 'the TPU'}"
        return [
            examples,
            *(PreviewRow(name, "known once connected") for name in ("left out", "steps")),
            PreviewRow("batch", share),
        ]
    parts = filled.plan.micro_batches or 1
    at_a_time = f", {counts.per_replica_batch // parts} at a time" if parts > 1 else ""
    return [
        examples,
        PreviewRow(
            "left out",
            f"{units.count(counts.dropped_examples)} examples an epoch" if counts.dropped_examples else "none",
        ),
        PreviewRow(
            "steps", f"{units.count(counts.steps_per_epoch)} an epoch, {units.count(counts.total_steps)} in all"
        ),
        PreviewRow("batch", f"{counts.per_replica_batch} on {_each(filled.placement)}{at_a_time}"),
    ]


def _each(placement: Placement) -> str:
    devices = placement.devices[0] if len(placement.devices) == 1 else f"each of {', '.join(placement.devices)}"
    if placement.replicas_per_device > 1:
        devices = f"each of {placement.replicas_per_device} cores of {devices}"
    return devices if placement.workers == 1 else f"{devices} of each of {placement.workers} workers"


def _precision(filled: FormResult) -> list[PreviewRow]:
    """What numbers are computed with, where those are not plain float32."""
    policy = filled.plan.policy
    return [] if policy == "float32" else [PreviewRow("precision", policy)]


def _memory(filled: FormResult, description: Description | None, pending: str) -> list[PreviewRow]:
    if description is None:
        return [PreviewRow("memory", pending, pending=True)]
    if description.problem or filled.step_counts is None:
        return [PreviewRow("memory", "—")]
    needed = estimate.estimate_memory(
        filled.plan,
        filled.step_counts.per_replica_batch,
        description.parameters,
        description.trainable,
        description.activations,
    )
    each = " a device" if filled.step_counts.replicas > 1 else ""
    return [PreviewRow("memory", f"about {units.size(needed)}{each} beside data")]
