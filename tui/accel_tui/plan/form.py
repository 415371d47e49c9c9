"""What the plan's form knows: texts in, a plan or reasons out; no widgets.

Everything comes from the plan's specs and the catalogues, so that a new field or model is on the
screen as soon as it is there.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accel_engine import data, estimate, models, strategies
from accel_engine.data import DatasetEntry
from accel_engine.data.pixel_scaling import choose_scaling
from accel_engine.devices.reading import Device
from accel_engine.errors import PlanError, UsageError
from accel_engine.estimate import StepCounts
from accel_engine.field_spec import AUTO
from accel_engine.models import ModelEntry
from accel_engine.plan import SPECS, Plan
from accel_engine.strategies import Placement
from accel_tui.formatting import field_labels, units
from accel_tui.plan.relevance import relevant, sensible

WHAT = ("model", "data", "image_size", "scale", "name")
WHERE = (
    "strategy",
    "devices",
    "virtual_cpus",
    "precision",
    "force",
    "xla",
    "reduction",
    "local_workers",
    "tpu",
    "memory_growth",
    "memory_limit",
)

GROUPS: dict[str, tuple[str, ...]] = {
    "What": WHAT,
    "Where": WHERE,
    "How": tuple(name for name in SPECS if name not in WHAT + WHERE),
}
"""The fields of the form by the question that they answer; a field of no other group is a how."""

_DOCS = {
    "model": "Model: a name, FILE.py:FUNCTION, PACKAGE.MODULE:FUNCTION or FILE.keras",
    "data": "Data: a name, FILE.npz, a folder, or synthetic[:SHAPE[:CLASSES[:NUMBER]]]",
}
"""Of fields whose own words need more than a line."""

_REMEDIES = {"local_workers": 2, "tpu": "local"}
"""Of fields that mean something under some strategies only, what those may lack until it is filled in."""

_FLAG = re.compile(r"--([a-z]+(?:-[a-z]+)*)")


@dataclass(frozen=True, slots=True)
class FieldChoice:
    """Something that a field can be set to.

    Attributes:
        value: The field's text.
        note: What it is, in a line; why not, when it is not possible.
        possible: Whether it can be chosen here.
    """

    value: str
    note: str = ""
    possible: bool = True


@dataclass(frozen=True, slots=True)
class FormResult:
    """A form as it is filled in.

    Attributes:
        plan: The plan of all fields that are right; the others are at their default.
        errors: By field, what it may be instead.
        layout: What would train; ``None`` before the machine's devices are known.
        entry: The data, as far as it is known.
        schedule: Its steps; ``None`` when the number of examples or of replicas is not known, or is wrong.
    """

    plan: Plan
    errors: Mapping[str, str]
    layout: Placement | None
    entry: DatasetEntry
    schedule: StepCounts | None = None


def doc(name: str) -> str:
    """What a field is for, in a line that fits the smallest comfortable terminal."""
    return _DOCS.get(name, SPECS[name].doc)


def text_of(value: Any) -> str:
    """A plan's value as the text of its field."""
    if value is None:
        return ""
    return ",".join(value) if isinstance(value, tuple) else str(value)


def fill(
    texts: Mapping[str, str], devices: Sequence[Device] | None = None, surveyed: DatasetEntry | None = None
) -> FormResult:
    """Read all fields that mean something; every one that is wrong says why.

    Args:
        texts: The fields' texts by name; those that are left out, or mean nothing beside the others, are at
            their default.
        devices: The machine's devices; without them, what fits is not checked.
        surveyed: What was last found in the user's own data, which may be other data by now.
    """
    plan, errors = _read(texts)
    plan, errors = _read({name: text for name, text in texts.items() if relevant(name, plan, devices)})
    entry = data.find(plan.data)
    if surveyed is not None and entry.path is not None and surveyed.path == entry.path:
        entry = surveyed
    layout = None
    schedule = None
    try:
        if devices is not None:
            layout = strategies.resolve_placement(plan, devices)
        if layout is not None and layout.replicas is not None and entry.examples is not None:
            schedule = estimate.count_steps(plan, entry.examples, layout.replicas)
    except PlanError as error:
        errors.setdefault(error.field, error.allowed)
    except UsageError as error:
        errors.setdefault("strategy", str(error))
    try:
        if entry.value_range is not None:
            choose_scaling(plan.scale, entry.value_range)
    except PlanError as error:
        errors.setdefault(error.field, error.allowed)
    model = models.find(plan.model)
    if isinstance(model, ModelEntry) and entry.shape is not None and (reason := model.mismatch(entry.shape)):
        errors.setdefault("model", reason)
    return FormResult(plan, {name: on_screen(reason) for name, reason in errors.items()}, layout, entry, schedule)


def on_screen(reason: str) -> str:
    """A reason that names fields as the form does, where it names the command's options: ``--virtual-cpus 2``."""
    return _FLAG.sub(lambda flag: field_labels.label(flag[1].replace("-", "_")), reason)


def _read(texts: Mapping[str, str]) -> tuple[Plan, dict[str, str]]:
    """Make a plan of the fields that are right; a plan names one wrong field at a time."""
    values: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for name, text in texts.items():
        try:
            values[name] = SPECS[name].parse(name, text.strip() or (AUTO if SPECS[name].optional else ""))
        except PlanError as error:
            errors[name] = error.allowed
    while True:
        try:
            return Plan.from_mapping(values), errors
        except PlanError as error:
            errors[error.field] = error.allowed
            del values[error.field]


def offers(name: str) -> bool:
    """Whether there is something to choose from for a field."""
    return bool(SPECS[name].choices) or name in ("model", "data", "strategy", "devices")


def choices(name: str, filled: FormResult, devices: Sequence[Device] = ()) -> tuple[FieldChoice, ...]:
    """What is offered for a field; nothing for one that takes any number or text.

    Args:
        name: The field.
        filled: What else is chosen.
        devices: The machine's.
    """
    match name:
        case "model":
            return tuple(_model(entry, filled.entry) for entry in models.CATALOGUE.values())
        case "data":
            return tuple(
                FieldChoice(entry.name, f"{entry.summary}: {about(entry)}") for entry in data.CATALOGUE.values()
            )
        case "strategy":
            return tuple(_strategy(entry, filled.plan, devices) for entry in strategies.CATALOGUE.values())
        case "devices":
            return _devices(filled.plan, devices)
        case "reduction":
            return tuple(FieldChoice(value) for value in strategies.find(filled.plan.strategy).reductions)
    return tuple(FieldChoice(value) for value in SPECS[name].choices)


def about(entry: DatasetEntry) -> str:
    """Shape, classes and examples of a dataset, as far as they are known."""
    parts = [
        units.shape(entry.shape) if entry.shape is not None else "",
        f"{entry.classes} classes" if entry.classes else "",
        f"{units.count(entry.examples)} examples" if entry.examples else "",
    ]
    return ", ".join(part for part in parts if part)


def remark(name: str, filled: FormResult) -> str:
    """What a field's present value is, in a line, where that needs saying."""
    match name:
        case "model":
            model = models.find(filled.plan.model)
            return f"{model.summary}; takes {model.takes}" if isinstance(model, ModelEntry) else "your own"
        case "data":
            return "; ".join(part for part in (filled.entry.summary, about(filled.entry)) if part)
        case "strategy":
            return strategies.find(filled.plan.strategy).summary
        case "precision" if filled.plan.precision == "auto":
            return filled.plan.policy
    return ""


def empty(name: str, filled: FormResult) -> str:
    """What a field stands for when it is left empty."""
    layout = filled.layout if name == "devices" and not filled.plan.devices else None
    chosen = layout.elsewhere or ",".join(layout.devices) if layout else ""
    return f"auto: {chosen}" if chosen else field_labels.empty(name)


def _model(entry: ModelEntry, chosen: DatasetEntry) -> FieldChoice:
    reason = entry.mismatch(chosen.shape) if chosen.shape is not None else ""
    return FieldChoice(entry.name, reason or entry.summary, not reason)


def _strategy(entry: strategies.StrategyEntry, plan: Plan, devices: Sequence[Device]) -> FieldChoice:
    if not devices:
        return FieldChoice(entry.name, entry.summary)
    # Which devices it may use, how it sums and in which numbers it computes is for the user to decide after the
    # strategy; only what is there counts.
    chosen = sensible(plan.replace(strategy=entry.name, devices=(), reduction="auto", precision="auto"), devices)
    lacks = strategies.incompatibility(entry.name, chosen, devices)
    remedies = {name: value for name, value in _REMEDIES.items() if relevant(name, chosen, devices)}
    reason = strategies.incompatibility(entry.name, chosen.replace(**remedies), devices) if lacks else ""
    return FieldChoice(entry.name, on_screen(reason or lacks) or entry.summary, not reason)


def _devices(plan: Plan, devices: Sequence[Device]) -> tuple[FieldChoice, ...]:
    known = {device.id: device.name for device in devices if device.kind != "cpu"}
    host = next((device.name for device in devices if device.kind == "cpu"), "")
    for index in range(plan.virtual_cpus):
        known[f"cpu:{index}"] = host if plan.virtual_cpus == 1 else f"one of {plan.virtual_cpus} parts of {host}"
    gpus = [device.id for device in devices if device.kind == "gpu"]
    several = (FieldChoice(",".join(gpus), "all GPUs"),) if len(gpus) > 1 else ()
    return (
        FieldChoice("", "all that the strategy can use"),
        *several,
        *(FieldChoice(device, note) for device, note in known.items()),
    )
