"""The form of a plan: turns the texts of fields into a plan or errors, without widgets.

Fields and choices come from the plan's specs and the catalogues.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from accel_engine import data, models, strategies
from accel_engine.data import DatasetEntry
from accel_engine.data.data_options import COLUMN_OPTIONS, SPLITS
from accel_engine.data.source import EntryColumn
from accel_engine.devices.device_types import Device
from accel_engine.errors import PlanError, Words
from accel_engine.models import AutoModel, ModelEntry, choose
from accel_engine.models.data_description import DataDescription, describe_entry
from accel_engine.plan import DEFAULTS, RULES, SPECS, WORDS, Plan
from accel_engine.plan.field_spec import AUTO
from accel_engine.plan.monitor import measured_names
from accel_engine.plan.placement import incompatibility
from accel_engine.plan.plan import default_text
from accel_engine.plan.plan_file import valid_part
from accel_engine.plan.resolved_plan import ResolvedPlan, resolve
from accel_engine.plan.task_choices import LOSSES_OF, METRICS_OF
from accel_engine.words import numbers
from accel_tui.plan import data_text, field_labels
from accel_tui.plan.field_labels import label, word

_REQUIRED_VALUES = {"local_workers": 2, "tpu": "local"}
"""Values with which a strategy becomes available that needs them."""


@dataclass(frozen=True, slots=True)
class FieldChoice:
    """A choice for a field."""

    value: str
    """The text of the field."""
    note: str = ""
    """A description; for an unavailable choice, the reason."""
    possible: bool = True
    """Whether it is available."""


def default_reason(name: str) -> str:
    """The default of a field with its reason, in one line of up to 78 columns."""
    default = default_text(name) or field_labels.placeholder(name) or "none"
    return f"default {default}: {WORDS[name].why}"


def field_text(value: Any) -> str:
    """The value of a plan field as the text of the form."""
    if value is None:
        return ""
    return ",".join(value) if isinstance(value, tuple) else str(value)


def resolve_form(
    texts: Mapping[str, str], devices: Sequence[Device] | None = None, surveyed: DatasetEntry | None = None
) -> ResolvedPlan:
    """Resolve the plan of a form; irrelevant, invalid and missing fields are at their default.

    Args:
        texts: The texts by field.
        devices: The devices of the machine; without them, the plan is not placed.
        surveyed: The last inspected user dataset; ignored if the form names another one.
    """
    plan, _ = _read(texts)
    relevant = _with_survey(resolve(plan), surveyed)
    plan, errors = _read({name: text for name, text in texts.items() if is_relevant(name, relevant, devices)})
    resolved = _with_survey(resolve(plan, devices), surveyed)
    return replace(resolved, errors={**resolved.errors, **errors})


def _with_survey(resolved: ResolvedPlan, surveyed: DatasetEntry | None) -> ResolvedPlan:
    """Complete a plan with a survey, if it is of the plan's data."""
    if surveyed is None or surveyed.path is None or surveyed.path != resolved.data.path:
        return resolved
    return resolved.with_data(surveyed)


def _read(texts: Mapping[str, str]) -> tuple[Plan, dict[str, Words]]:
    """Make a plan of the valid fields."""
    values: dict[str, Any] = {}
    errors: dict[str, Words] = {}
    for name, text in texts.items():
        try:
            values[name] = SPECS[name].parse(name, text.strip() or (AUTO if SPECS[name].optional else ""))
        except PlanError as error:
            is_item = is_list(name) and error.value != text.strip()
            errors[name] = (f"{error.value!r}: ", *error.reason) if is_item else error.reason
    plan, found = valid_part(values, invalid=errors)
    return plan, errors | {name: error.reason for name, error in found.items()}


def has_choices(name: str) -> bool:
    """Whether a field has a list of choices."""
    words = WORDS[name]
    return bool(SPECS[name].choices or words.suggestions or words.catalogue) or name in ("devices", *COLUMN_OPTIONS)


def is_list(name: str) -> bool:
    """Whether a field takes several of its choices."""
    return SPECS[name].type is tuple and name != "devices"


def choices(name: str, filled: ResolvedPlan, devices: Sequence[Device] = ()) -> tuple[FieldChoice, ...]:
    """Return the choices for a field; none for a free number or text.

    Args:
        name: The field.
        filled: The present form.
        devices: The devices of the machine.
    """
    match name:
        case "model":
            return _models(filled)
        case "data":
            notes = {entry.name: f"{entry.summary}: {describe_dataset(entry)}" for entry in data.CATALOGUE.values()}
            return tuple(FieldChoice(name, note) for name, note in notes.items())
        case "strategy":
            return tuple(_strategy(entry, filled.plan, devices) for entry in strategies.CATALOGUE.values())
        case "devices":
            return _devices(filled.plan, devices)
        case "reduction":
            return tuple(FieldChoice(value) for value in filled.strategy.reductions)
        case "monitor":
            names = measured_names(filled.plan, _task(filled))
            return tuple(FieldChoice(name) for name in (*(f"validation_{name}" for name in names), *names))
        case "split":
            of_columns = (f"column:{column.name}" for column in filled.data.columns if column.kind == "category")
            return tuple(FieldChoice(value) for value in (*SPLITS, *of_columns))
    if name in COLUMN_OPTIONS:
        return tuple(_column(name, column) for column in filled.data.columns)
    if suggestions := WORDS[name].suggestions:
        return tuple(FieldChoice(*suggestion) for suggestion in suggestions)
    if name in ("loss", "metrics"):
        fitting = (LOSSES_OF if name == "loss" else METRICS_OF).get(_task(filled), SPECS[name].choices)
        return tuple(FieldChoice(value) for value in SPECS[name].choices if value == AUTO or value in fitting)
    return tuple(FieldChoice(value) for value in SPECS[name].choices)


def _task(filled: ResolvedPlan) -> str:
    """The task, as far as it is known before the model is built."""
    task = filled.data.task if filled.plan.task == AUTO else filled.plan.task
    return "classification" if task == AUTO and filled.data.classes else task


def _column(name: str, column: EntryColumn) -> FieldChoice:
    """A column as a choice; several names, or a kind, are typed after it."""
    value = f"{column.name}={column.kind}" if name == "kinds" else column.name
    return FieldChoice(value, "; ".join(part for part in (column.kind, column.detail) if part))


def describe_dataset(entry: DatasetEntry) -> str:
    """The known shape, classes and examples of a dataset."""
    parts = [
        data_text.inputs(entry),
        numbers.counted(entry.classes, "class") if entry.classes else "",
        numbers.counted(entry.examples, "example") if entry.examples else "",
    ]
    return ", ".join(part for part in parts if part)


def describe_value(name: str, filled: ResolvedPlan) -> str:
    """Describe the present value of a field in a line; empty if it needs no description."""
    match name:
        case "model":
            return _describe_model(filled)
        case "data":
            return "; ".join(part for part in (filled.data.summary, describe_dataset(filled.data)) if part)
        case "strategy":
            return filled.strategy.summary
        case "precision" if filled.plan.precision == "auto":
            return filled.plan.policy
    return ""


def resolved_placeholder(name: str, filled: ResolvedPlan) -> str:
    """The value that an empty field stands for."""
    placement = filled.placement if name == "devices" and not filled.plan.devices else None
    default = placement.remote_tpu or ",".join(placement.devices) if placement else ""
    return f"auto: {default}" if default else field_labels.placeholder(name)


def _models(filled: ResolvedPlan) -> tuple[FieldChoice, ...]:
    """``auto``, with the model that it takes, and the catalogue."""
    described = describe_entry(filled.data, filled.plan.task)
    note, possible = "the default model for the data, known once it is read", True
    try:
        taken = choose.resolve_model(AutoModel(), described)
        note = f"{taken.name}, the default for the data" if isinstance(taken, ModelEntry) else note
    except PlanError as error:
        note, possible = word(error.reason), False
    return (
        FieldChoice("auto", note, possible),
        *(_model(entry, described) for entry in models.CATALOGUE.values()),
    )


def _model(entry: ModelEntry, described: DataDescription | None) -> FieldChoice:
    reason = entry.mismatch(described) if described else ""
    return FieldChoice(entry.name, reason or entry.summary, not reason)


def _describe_model(filled: ResolvedPlan) -> str:
    """A line about the model; about the one that ``auto`` stands for, once it is known."""
    model = filled.model
    if isinstance(model, ModelEntry):
        chosen = f"auto: {model.name}. " if filled.plan.model.lower() == "auto" else ""
        return f"{chosen}{model.summary}; input: {model.takes}"
    return "auto: known once the data is read" if isinstance(model, AutoModel) else "your own model"


def _strategy(entry: strategies.StrategyEntry, plan: Plan, devices: Sequence[Device]) -> FieldChoice:
    if not devices:
        return FieldChoice(entry.name, entry.summary)
    # Devices, reduction and precision are selected after the strategy: only the hardware counts here.
    later = {name: DEFAULTS[name] for name in ("devices", "reduction", "precision", "force")}
    try:
        chosen = drop_irrelevant(plan.replace(strategy=entry.name, **later), devices)
    except PlanError as error:  # another field cannot have this strategy
        return FieldChoice(entry.name, f"{label(error.field)}: {word(error.reason)}", possible=False)
    missing = incompatibility(entry.name, chosen, devices)
    relevant = resolve(chosen)
    required = {name: value for name, value in _REQUIRED_VALUES.items() if is_relevant(name, relevant, devices)}
    reason = incompatibility(entry.name, chosen.replace(**required), devices) if missing else ()
    return FieldChoice(entry.name, word(reason or missing) or entry.summary, not reason)


def _devices(plan: Plan, devices: Sequence[Device]) -> tuple[FieldChoice, ...]:
    descriptions = {device.id: device.name for device in devices if device.kind != "cpu"}
    host = next((device.name for device in devices if device.kind == "cpu"), "")
    for index in range(plan.virtual_cpus):
        descriptions[f"cpu:{index}"] = (
            host if plan.virtual_cpus == 1 else f"logical CPU {index + 1} of {plan.virtual_cpus}"
        )
    gpus = [device.id for device in devices if device.kind == "gpu"]
    several = (FieldChoice(",".join(gpus), "all GPUs"),) if len(gpus) > 1 else ()
    return (
        FieldChoice("", "all devices that the strategy can use"),
        *several,
        *(FieldChoice(device, note) for device, note in descriptions.items()),
    )


def is_relevant(name: str, resolved: ResolvedPlan, devices: Sequence[Device] | None) -> bool:
    """Whether a field is relevant.

    Args:
        name: The field.
        resolved: The plan, which may have values in irrelevant fields.
        devices: The devices of the machine; ``None`` before they are known, when fields of special
            hardware are relevant if they have a value.
    """
    need, purpose = RULES[name].needs, RULES[name].only_for
    if need is not None and not need.is_met(resolved.plan):
        return False
    has_value = getattr(resolved.plan, name) != DEFAULTS[name]
    return purpose is None or purpose.is_relevant(resolved.situation(devices), has_value=has_value)


def drop_irrelevant(plan: Plan, devices: Sequence[Device] | None) -> Plan:
    """Return the plan with irrelevant fields at their default."""
    resolved = resolve(plan)
    return plan.replace(**{name: DEFAULTS[name] for name in DEFAULTS if not is_relevant(name, resolved, devices)})


def needs(name: str) -> str:
    """The condition under which a field is relevant, in a few words; empty for a field that always is."""
    need, purpose = RULES[name].needs, RULES[name].only_for
    return f"only for {purpose.what}" if purpose else f"needs {need.what}" if need else ""
