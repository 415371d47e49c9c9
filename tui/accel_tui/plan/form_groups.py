"""The groups of the form: which fields are shown first, and what a folded group shows, without widgets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from accel_engine.plan import GROUPS, SPECS, WORDS
from accel_engine.plan.fields import PlanFields
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_tui.plan import field_labels, form

_PLACES = sorted((words.first, name) for name, words in WORDS.items() if words.first is not None)

FIRST: dict[str, tuple[str, ...]] = {
    title: tuple(name for (column, _), name in _PLACES if column == number)
    for number, title in enumerate(("Model, data, devices", "Training"))
}
"""The fields that are never folded, in two columns."""

COLUMNS: tuple[tuple[str, ...], ...] = (
    (
        "Task, inputs",
        "Columns",
        "Time series",
        "Splits",
        "Augmentation",
        "Fine-tuning",
        "Validation",
        "Checkpoints",
        "Devices",
    ),
    ("Epochs, batches", "Loss, metrics", "Optimizer", "LR schedule", "Early stopping"),
)
"""The folded groups, in two columns."""

_FIRST = frozenset(name for names in FIRST.values() for name in names)


def fields_of(group: str) -> tuple[str, ...]:
    """The fields of a folded group."""
    return tuple(name for name in GROUPS[group] if name not in _FIRST)


def group_of(name: str) -> str:
    """The folded group of a field; empty for one that is never folded."""
    return "" if name in _FIRST else WORDS[name].group


ORDER: tuple[str, ...] = (
    *(name for names in FIRST.values() for name in names),
    *(name for column in COLUMNS for group in column for name in fields_of(group)),
)
"""All fields in the order of the screen."""


def is_changed(name: str, filled: ResolvedPlan, defaults: PlanFields) -> bool:
    """Whether a field of a form differs from its default, or is invalid."""
    return name in filled.errors or getattr(filled.plan, name) != getattr(defaults, name)


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """What a folded group shows after its title."""

    text: str = ""
    """The changed values, or the labels of the fields."""
    is_changed: bool = False
    """Whether a field differs from its default."""
    is_wrong: bool = False
    """Whether a field is invalid."""


def summarize_group(
    names: Sequence[str], filled: ResolvedPlan, defaults: PlanFields, ranges: Mapping[str, str] = MappingProxyType({})
) -> GroupSummary:
    """Summarize the relevant fields of a group; ``ranges`` are the texts of those that vary in a search."""
    changed = [name for name in names if name in ranges or is_changed(name, filled, defaults)]
    if changed:
        is_wrong = any(name in filled.errors for name in changed)
        texts = [
            f"{field_labels.label(name)} {ranges[name]}" if name in ranges else _value(name, filled) for name in changed
        ]
        return GroupSummary(", ".join(texts), is_changed=True, is_wrong=is_wrong)
    if len(names) == 1:
        return GroupSummary(_text(names[0], filled))
    return GroupSummary(", ".join(field_labels.label(name) for name in names))


def _value(name: str, filled: ResolvedPlan) -> str:
    if name in filled.errors:
        return f"{field_labels.label(name)} ?"
    text = _text(name, filled)
    return text if WORDS[name].leads_group else f"{field_labels.label(name)} {text}"


def _text(name: str, filled: ResolvedPlan) -> str:
    value = getattr(filled.plan, name)
    if SPECS[name].is_share and value and value < 1:
        return f"{100 * value:.4g}%"
    return form.to_text(value) or form.resolved_placeholder(name, filled)
