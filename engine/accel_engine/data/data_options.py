"""The settings of a plan that say how its data is read and split, and how columns are read as in the training file."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import TypeAlias

from accel_engine.errors import DataError, FieldValue, PlanError, UnreadableError

TASKS = (
    "auto",
    "classification",
    "multi-label",
    "regression",
    "sequence",
    "segmentation",
    "reconstruction",
    "custom",
)
"""Values of a plan's ``task``: one class per example; several; numbers; a label per token; a label per pixel; the
input itself or another image; the model's own loss. A compiled model decides how targets are compared."""

OF_CLASSES = ("classification", "multi-label")
"""Tasks with a probability of each class for an example."""

SPLITS = ("auto", "random", "stratified", "ordered", "none")
"""Values of a plan's ``split``, besides ``column:NAME``."""

INVALID_EXAMPLES = ("auto", "fail", "skip")
"""Values of a plan's ``invalid_examples``; ``auto`` skips the damaged files of a folder, and fails otherwise."""


SPLIT_COLUMN = "column:"
"""How a plan's ``split`` begins if it names a column."""


SPLIT_NAMES = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test", "testing"),
}
"""Names of the splits in data, in upper or lower case; preferred names first."""


def check_split(field: str, value: str) -> None:
    """Check a plan's ``split``.

    Raises:
        PlanError: The value is neither one of :data:`SPLITS` nor ``column:NAME``.
    """
    if value not in SPLITS and not value.startswith(SPLIT_COLUMN):
        raise PlanError(field, value, f"must be one of {', '.join(SPLITS)} or column:NAME")


DECIMAL_MARKS = ("auto", ".", ",")
"""Values of a plan's ``decimal``."""

THOUSANDS_MARKS = ("auto", "none", ",", ".", "'", "space", "_")
"""Values of a plan's ``thousands``; ``none`` if digits are not grouped."""

TOKENIZERS = ("characters", "bytes")
"""Values of a plan's ``tokenizer``."""

Progress: TypeAlias = Callable[[int, int], None]
"""Called now and then with the number of examples read, and of all (0 if unknown)."""


_SKIP = f" ({FieldValue('invalid_examples', 'skip')} "


def or_skip(problem: DataError, what: str = "such examples") -> DataError:
    """An error about invalid examples, with the option that leaves them out."""
    return DataError(f"{problem}{_SKIP}leaves {what} out)")


def without_skip(problem: DataError) -> DataError:
    """The same error without that option, which only training has."""
    return DataError(str(problem).partition(_SKIP)[0])


def no_progress(_done: int, _total: int) -> None:
    """Report nothing."""


PERCENT = "%"

NO_GROUPS = "none"
"""Instead of the mark between groups of digits, if they are known not to be grouped."""

_MARKS = {",": "commas", ".": "dots", "'": "apostrophes", " ": "spaces", "_": "underscores", NO_GROUPS: "nothing"}


@dataclass(frozen=True, slots=True)
class Notation:
    """How the numbers of a column are written."""

    decimal: str = ""
    """The mark before a fraction, a point or a comma; empty if not known."""
    thousands: str = ""
    """The mark between groups of digits, or :data:`NO_GROUPS`; empty if it is not known."""
    unit: str = ""
    """What stands before or after numbers: a currency, or :data:`PERCENT`; empty for nothing."""
    has_signs: bool = False
    """Whether numbers below zero have a minus sign behind them, or are in parentheses."""

    @property
    def is_plain(self) -> bool:
        """Whether numbers are as programs write them."""
        return self.decimal != "," and not (self.thousands or self.unit or self.has_signs)

    def __str__(self) -> str:
        return ", ".join(self._words()) or "a decimal point"

    def _words(self) -> Iterator[str]:
        if self.decimal == ",":
            yield "decimal commas"
        if self.thousands:
            yield f"{_MARKS[self.thousands]} between thousands"
        if self.unit:
            yield f"{self.unit} left out"
        if self.has_signs:
            yield "signs behind numbers and parentheses as below zero"


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """A column of the training file."""

    name: str
    kind: str
    """Its kind, as in :class:`accel_engine.data.tables.columns.TableColumn`."""
    date_format: str = ""
    """How dates were written; empty for other kinds."""
    truth_words: tuple[str, ...] = ()
    """The words for false and true of categories that are those two; empty for others."""
    as_spelled: bool = False
    """Whether categories differ by trailing zeros alone, so that other files' are taken as spelled."""
    notation: Notation = Notation()
    """How numbers were written."""
    missing: tuple[str, ...] = ()
    """Texts that the plan declares to mean a missing value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataOptions:
    """How data is read and split.

    Fields without a description have the same meaning as the fields of a plan with these names, which
    ``accel_engine.plan.fields`` describes.
    """

    task: str = "auto"
    seed: int = 0
    batch_size: int = 64
    """The global batch size, for functions of the user that ask for it."""
    scale: str = "auto"
    """``auto`` standardises the columns of a time series."""
    image_size: str | None = None
    target: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    decimal: str = "auto"
    thousands: str = "auto"
    missing: tuple[str, ...] = ()
    time: str = ""
    window: int | None = None
    horizon: int = 1
    group: str = ""
    tokenizer: str = "characters"
    split: str = "auto"
    validation_split: float = 0.1
    test_split: float = 0.0
    validation_data: str = ""
    keeps_split: bool = False
    """Whether ``validation_data`` takes the place of the validation examples once the data is split, so that training
    examples, and what is learned from them, are the same as in a run without it. No field of a plan."""
    keeps_raw: bool = False
    """Whether the raw rows of a table are kept beside the converted ones. No field of a plan."""
    formats: tuple[ColumnFormat, ...] = ()
    """How columns of a table are read that a trained model takes. No field of a plan."""
    takes_texts: bool = False
    """Whether the model takes texts, so that a table whose only input is a text gives it unchanged. No field of
    a plan."""
    validation_steps: int | None = None
    class_weight: tuple[str, ...] = ()
    invalid_examples: str = "auto"

    @property
    def split_column(self) -> str:
        """The column by which the plan splits examples; empty if it names none."""
        return self.split.removeprefix(SPLIT_COLUMN) if self.split.startswith(SPLIT_COLUMN) else ""


_NO_FIELDS = ("keeps_split", "keeps_raw", "formats", "takes_texts")

PLAN_FIELDS = tuple(item.name for item in fields(DataOptions) if item.name not in _NO_FIELDS)
"""The options that are fields of a plan."""


COLUMN_OPTIONS = ("target", "features", "ignore", "kinds", "time", "group")
"""The options that name columns."""


def is_skipped(problem: DataError, options: DataOptions) -> bool:
    """Whether an example that cannot be read for this reason is left out."""
    skipped = {"auto": isinstance(problem, UnreadableError), "fail": False, "skip": True}
    return skipped[options.invalid_examples]
