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
    plan, laid_out = filled.plan, filled.schedule
    if description and description.problem:
        said.append(description.problem)
    if (scaling := _chosen_scaling(filled, description)) and scaling.note:
        said.append(form.on_screen(scaling.note))
    said += filled.entry.notes
    if laid_out and (rest := plan.batch_size - laid_out.global_batch):
        said.append(
            f"{plan.batch_size} does not divide by {laid_out.replicas} replicas: a step takes "
            f"{laid_out.global_batch} examples, {rest} fewer"
        )
    if laid_out and strategies.find(plan.strategy).kind == "tpu":
        said += filter(None, [estimate.tpu_advice(laid_out, filled.entry.examples or 0)])
    if laid_out and laid_out.passes > 1:
        said.append(f"an epoch goes over the data {laid_out.passes:.3g} times")
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
    return [PreviewRow("scaling", scaling.text) if scaling else PreviewRow("scaling", pending, pending=True)]


def _chosen_scaling(filled: FormResult, description: Description | None) -> Scaling | None:
    """What is done to raw numbers; ``None`` while that is not known, or cannot be."""
    numbers, model = filled.entry.value_range, models.find(filled.plan.model)
    known = description is not None or (isinstance(model, ModelEntry) and not model.preprocesses)
    if numbers is None or "scale" in filled.errors or (numbers.pixels and filled.plan.scale == "auto" and not known):
        return None
    return choose_scaling(filled.plan.scale, numbers, description.preprocessing if description else "")


def _steps(filled: FormResult) -> list[PreviewRow]:
    laid_out, entry = filled.schedule, filled.entry
    if entry.examples is None or filled.layout is None:
        return [PreviewRow(name, "—") for name in ("examples", "left out", "steps", "batch")]
    held = f" + {units.count(entry.validation_examples)} held out" if entry.validation_examples else ""
    examples = PreviewRow("examples", units.count(entry.examples) + held)
    if laid_out is None:
        share = f"{filled.plan.batch_size} shared by the cores of {filled.layout.elsewhere or 'the TPU'}"
        return [
            examples,
            *(PreviewRow(name, "known once connected") for name in ("left out", "steps")),
            PreviewRow("batch", share),
        ]
    parts = filled.plan.micro_batches or 1
    at_a_time = f", {laid_out.per_replica_batch // parts} at a time" if parts > 1 else ""
    return [
        examples,
        PreviewRow(
            "left out",
            f"{units.count(laid_out.dropped_examples)} examples an epoch" if laid_out.dropped_examples else "none",
        ),
        PreviewRow(
            "steps", f"{units.count(laid_out.steps_per_epoch)} an epoch, {units.count(laid_out.total_steps)} in all"
        ),
        PreviewRow("batch", f"{laid_out.per_replica_batch} on {_each(filled.layout)}{at_a_time}"),
    ]


def _each(layout: Placement) -> str:
    devices = layout.devices[0] if len(layout.devices) == 1 else f"each of {', '.join(layout.devices)}"
    if layout.cores > 1:
        devices = f"each of {layout.cores} cores of {devices}"
    return devices if layout.workers == 1 else f"{devices} of each of {layout.workers} workers"


def _precision(filled: FormResult) -> list[PreviewRow]:
    """What numbers are computed with, where those are not plain float32."""
    policy = filled.plan.policy
    return [] if policy == "float32" else [PreviewRow("precision", policy)]


def _memory(filled: FormResult, description: Description | None, pending: str) -> list[PreviewRow]:
    if description is None:
        return [PreviewRow("memory", pending, pending=True)]
    if description.problem or filled.schedule is None:
        return [PreviewRow("memory", "—")]
    needed = estimate.estimate_memory(
        filled.plan,
        filled.schedule.per_replica_batch,
        description.parameters,
        description.trainable,
        description.activations,
    )
    each = " a device" if filled.schedule.replicas > 1 else ""
    return [PreviewRow("memory", f"about {units.size(needed)}{each} beside data")]
