"""The survey of a dataset before training, as short texts."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from accel_engine import data
from accel_engine.data import DataOptions, DatasetEntry
from accel_engine.data.data_options import PLAN_FIELDS
from accel_engine.data.source import EntryColumn
from accel_engine.data.structure import describe
from accel_engine.errors import AccelError, PlanError, Words
from accel_engine.plan import DEFAULTS, Plan
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.user_code import reason
from accel_engine.words import numbers
from accel_tui.plan import field_labels

_MAX_NAMES = 6
"""Names listed in a line; the others are counted."""


@dataclass(frozen=True, slots=True)
class PreviewRow:
    """A row of the summary."""

    name: str
    """Its label."""
    text: str
    """Its value."""
    pending: bool = False
    """Whether the value is not known yet."""


def structure(entry: DatasetEntry) -> str:
    """Inputs and targets in a line: ``8x8x1 → 10 classes``, ``8 columns → price``; empty if unknown."""
    given, predicted = inputs(entry), targets(entry)
    return f"{given} → {predicted}" if given and predicted else given


def inputs(entry: DatasetEntry) -> str:
    """The inputs of an example; empty if unknown."""
    columns = [column for column in entry.columns if column.role == "input"]
    if entry.kind == "table" and columns:
        return numbers.counted(len(columns), "column")
    if entry.shape is not None:
        return numbers.shape(entry.shape)
    return describe(entry.spec.inputs) if entry.spec else ""


def targets(entry: DatasetEntry) -> str:
    """The targets in words; empty if unknown or without targets."""
    if entry.classes:
        return numbers.counted(entry.classes, "class")
    if columns := [column.name for column in entry.columns if column.role == "target"]:
        return join_names(columns)
    return describe(entry.spec.targets) if entry.spec else ""


def splits(entry: DatasetEntry) -> str:
    """The number of examples of each split: ``1,437 + 360 validation``."""
    if entry.examples is None:
        return "unknown until they are read"
    held_out = (("validation", entry.validation_examples), ("test", entry.test_examples))
    return " + ".join(
        [numbers.count(entry.examples), *(f"{numbers.count(count)} {name}" for name, count in held_out if count)]
    )


def data_rows(entry: DatasetEntry) -> list[PreviewRow]:
    """Columns, targets, balance of classes and missing values, as far as they are known."""
    found = [
        ("columns", kinds(column for column in entry.columns if column.role == "input")),
        ("target", _target(entry)),
        ("balance", balance(entry.class_counts)),
        ("missing", _missing_values_text(entry.columns)),
        ("not used", join_names([column.name for column in entry.columns if column.role == "unused"])),
    ]
    return [PreviewRow(name, text) for name, text in found if text]


def kinds(columns: Iterable[EntryColumn]) -> str:
    """The kinds of columns with their numbers: ``6 number, 2 category``; empty for none or a single one."""
    counts = Counter(column.kind for column in columns)
    return ", ".join(f"{count} {kind}" for kind, count in counts.items()) if counts.total() > 1 else ""


def _target(entry: DatasetEntry) -> str:
    columns = [column for column in entry.columns if column.role == "target"]
    if len(columns) == 1:
        return ", ".join(filter(None, (columns[0].name, columns[0].kind, columns[0].detail)))
    return join_names([column.name for column in columns])


def balance(counts: Sequence[int]) -> str:
    """The smallest and the largest class: ``50 to 120 examples each``; empty if not counted."""
    if not counts:
        return ""
    low, high = min(counts), max(counts)
    if low == high:
        return f"{numbers.counted(low, 'example')} each"
    return f"{numbers.count(low)} to {numbers.count(high)} examples each"


def _missing_values_text(columns: Iterable[EntryColumn]) -> str:
    """The columns with missing values, most first: ``age 12, city 3``."""
    found = sorted((column for column in columns if column.missing), key=lambda column: -(column.missing or 0))
    return join_names([f"{column.name} {numbers.count(column.missing or 0)}" for column in found])


def join_names(texts: Sequence[str]) -> str:
    """A list of names, of which the first are shown."""
    return numbers.listed(texts, _MAX_NAMES)


SurveySubject: TypeAlias = tuple[str, DataOptions]
"""What a survey depends on."""


@dataclass(frozen=True, slots=True)
class SurveyError:
    """Why the user's data cannot be used as a plan says."""

    subject: SurveySubject
    """The data and its options."""
    field: str
    """The field that is wrong."""
    reason: Words
    """What is wrong with it."""


DATA_FIELDS = tuple(name for name in PLAN_FIELDS if name not in ("seed", "batch_size"))
"""The plan's fields that say how data is read and split."""


def survey_subject(plan: Plan) -> SurveySubject:
    """The values on which the survey of a plan's data depends: neither seed nor batch size."""
    return plan.data, replace(plan.data_options, seed=DEFAULTS["seed"], batch_size=DEFAULTS["batch_size"])


def is_data(text: str) -> bool:
    """Whether a text names data, be it valid or not."""
    try:
        data.find(text)
    except PlanError:
        return False
    return True


def survey_form(filled: ResolvedPlan) -> DatasetEntry | SurveyError:
    """Survey the data of a form; may read files, so call it from a thread."""
    subject = survey_subject(filled.plan)
    try:
        return data.survey(data.find(filled.plan.data), filled.plan.data_options)
    except PlanError as error:
        return SurveyError(subject, error.field, error.reason)
    except AccelError as error:
        return SurveyError(subject, "data", (field_labels.in_form(str(error)),))
    except Exception as error:  # noqa: BLE001 (of a library, about a file; otherwise the form would wait for ever)
        return SurveyError(subject, "data", (f"cannot be read: {reason(error)}",))
