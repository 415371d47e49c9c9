"""The columns of a table as NumPy arrays and as text, and checks of those that a plan names; without TensorFlow."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.changes import Change
from accel_engine.data.data_options import ColumnFormat, DataOptions, Notation
from accel_engine.data.roles import Roles
from accel_engine.data.source import EntryColumn
from accel_engine.errors import PlanError
from accel_engine.text import suggestion, truncated
from accel_engine.words import numbers

KINDS = ("number", "category", "text", "date", "boolean")
"""Kinds of columns that a plan's ``kinds`` can name."""

NUMBERS_SHARE = 0.95
"""A column of texts holds numbers, or dates, if at least this share of its values are; the others count as missing."""

_MARKS = frozenset(
    ("-", "--", "---", "\u2013", "\u2014", ".", "..", "...", "*", "**", "#", "none", "n.a.", "na", "nan", "null",
     "n.d.", "nd", "k.a.", "unknown", "missing", "nil", "empty", "blank", "(empty)", "(blank)")
)  # fmt: skip
"""Texts that mean a missing value where all others are numbers or dates, in lower case."""

_MAX_MARKS = 5
"""The most different texts of these in a column whose other texts are numbers or dates."""

_SAMPLES = 5
_SHOWN_COLUMNS = 8
_SHOWN_TEXT = 60


@dataclass(frozen=True, slots=True, eq=False)
class TableColumn:
    """A column of a table."""

    name: str
    """Its name, unique in its file."""
    kind: str
    """One of :data:`~accel_engine.data.tables.columns.KINDS`; ``key`` for numbers or names of the rows, ``empty`` if
    all values are missing, ``other`` for lists, bytes and so on."""
    values: npt.NDArray[Any]
    """One value per row: float64 with NaN for numbers; seconds since 1970 as float64 with NaN for dates; otherwise an
    object array of texts with ``None``."""
    missing: int
    """Number of missing values."""
    categories: tuple[str, ...] = ()
    """The different texts, sorted, of a category or a boolean; empty for other kinds."""
    truth_words: tuple[str, ...] = ()
    """The words for false and true of categories that are those two; empty for others."""
    as_spelled: bool = False
    """See :class:`~accel_engine.data.data_options.ColumnFormat`."""
    integers: bool = False
    """Whether all numbers are whole."""
    date_format: str = ""
    """How dates were written."""
    notation: Notation = Notation()  # noqa: RUF009 (frozen)
    """How numbers were written."""
    is_ambiguous: bool = False
    """Whether only other columns can tell whether numbers have fractions or thousands."""
    missing_texts: tuple[str, ...] = ()
    """Texts that the plan declares to mean a missing value."""
    changes: tuple[Change, ...] = ()
    """What reading changed."""

    @property
    def format(self) -> ColumnFormat:
        """How it was read."""
        is_numbered = self.kind == "key" and self.values.dtype != object
        kind = "number" if is_numbered else self.kind
        return ColumnFormat(
            self.name, kind, self.date_format, self.truth_words, self.as_spelled, self.notation, self.missing_texts
        )

    @property
    def truths(self) -> npt.NDArray[np.float64]:
        """1 for true, 0 for false, NaN where there is neither, ``[rows]``."""
        found = np.full(len(self.values), np.nan)
        for number, word in enumerate(self.truth_words):
            found[self.values == word] = number
        return found

    @property
    def missing_rows(self) -> npt.NDArray[np.bool_]:
        """Whether each value is missing, ``[rows]``."""
        if self.values.dtype != object:
            return np.asarray(np.isnan(self.values))
        return np.asarray(np.equal(self.values, np.array(None, object)), bool)


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The columns of a file, or of its first rows."""

    columns: dict[str, TableColumn]
    """The columns by name, in the order of the file."""
    rows: int
    """Number of rows that were read."""
    complete: bool
    """Whether these are all rows of the file."""
    file_rows: int | None
    """Number of rows of the file; ``None`` if only reading all of it can tell."""
    bytes: int
    """Size of these rows in the file, about; 0 if unknown."""
    invalid: int
    """Number of rows that were left out, as they cannot be parsed."""
    notes: tuple[str, ...]
    """Notes for the user."""
    row_changes: tuple[Change, ...]
    """What reading changed in rows."""

    def changes_of(self, roles: Roles) -> tuple[Change, ...]:
        """The changes by reading in rows and in the columns that have a role."""
        used = roles.by_name()
        own = (change for name, column in self.columns.items() if name in used for change in column.changes)
        return (*self.row_changes, *own)

    @property
    def formats(self) -> dict[str, ColumnFormat]:
        """How each column was read."""
        return {name: column.format for name, column in self.columns.items()}


def declared_kinds(options: DataOptions) -> dict[str, str]:
    """The kinds that a plan's ``kinds`` declares, by column.

    Raises:
        PlanError: The text has another format, or an unknown kind.
    """
    kinds = {}
    for declared in options.kinds:
        name, equals, kind = declared.rpartition("=")
        if not equals or not name:
            raise PlanError("kinds", declared, f"must be NAME=KIND, e.g. {declared.strip('=') or 'zip'}=category")
        if kind not in KINDS:
            raise PlanError("kinds", declared, f"no such kind of column; {suggestion(kind, KINDS)}")
        kinds[name] = kind
    return kinds


def describe_column(column: TableColumn, role: str) -> EntryColumn:
    """A column with its role, and its range or commonest values."""
    return EntryColumn(column.name, column.kind, role, column.missing, _detail(column))


def _detail(column: TableColumn) -> str:
    """The range of numbers and dates, or the commonest texts with their shares."""
    if column.kind in ("empty", "other"):
        return ""
    known = column.values[~column.missing_rows]
    if not len(known):
        return ""
    if column.kind == "date":
        return " to ".join(_date(seconds) for seconds in (known.min(), known.max()))
    if known.dtype != object:
        return f"{numbers.value(known.min())} to {numbers.value(known.max())}"
    counts = Counter(known.tolist())
    if column.kind in ("text", "key"):
        return f"{len(counts):,} different"
    common = ", ".join(
        f"{truncated(text, 20)} {numbers.percent(count / len(known), 0)}" for text, count in counts.most_common(3)
    )
    return common + (f" and {len(counts) - 3:,} more" if len(counts) > 3 else "")


def sample_rows(table: Columns, inputs: Sequence[str], targets: Sequence[str]) -> list[tuple[str, str]]:
    """The first rows as text: some of the inputs, and the targets."""
    shown = inputs[:_SHOWN_COLUMNS]
    more = ", …" if len(inputs) > len(shown) else ""
    rows = []
    for row in range(min(_SAMPLES, table.rows)):
        left = ", ".join(f"{name}={cell_text(table.columns[name], row)}" for name in shown) + more
        right = ", ".join(f"{name}={cell_text(table.columns[name], row)}" for name in targets)
        rows.append((f"row {row + 1}", f"{left} → {right}" if right else left))
    return rows


def cell_text(column: TableColumn, row: int) -> str:
    """A value as notes and samples show it, cut if it is long."""
    value: Any = column.values[row]
    if column.missing_rows[row]:
        return "missing"
    if column.kind == "date":
        return _date(value)
    return truncated(value, _SHOWN_TEXT) if isinstance(value, str) else numbers.value(value)


def _date(seconds: float) -> str:
    """A date, with the time of day unless that is midnight."""
    text = str(np.datetime64(round(seconds), "s"))
    return text.removesuffix("T00:00:00").replace("T", " ")


def spread_texts(texts: Any, count: int) -> Any:
    """Some texts of an Arrow column from its start to its end, as the first ones may be of another kind."""
    import pyarrow as pa

    return texts.take(pa.array(np.linspace(0, len(texts) - 1, count).astype(int))) if len(texts) > count else texts


def are_marks(others: Any) -> bool:
    """Whether the different texts that are not numbers or dates, an Arrow array, mean missing values."""
    return 0 < len(others) <= _MAX_MARKS and all(text.lower() in _MARKS for text in others.to_pylist())


def unparsed(name: str, noun: str, failed: int, cells: Any, missing: npt.NDArray[np.bool_]) -> tuple[Change, ...]:
    """A note on texts that are not numbers or dates, and so missing; empty if all could be read."""
    if not failed:
        return ()
    row = int(np.flatnonzero(missing & cells.is_valid().to_numpy())[0])
    detail = f"no {noun}, such as {cells[row].as_py()[:40]!r} in row {row + 1:,}"
    return (Change("read as missing", f"values of {name}", failed, len(cells) - cells.null_count, detail),)
