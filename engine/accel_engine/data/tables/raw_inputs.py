"""The raw inputs of a table's preprocessing model: one array per column, or per part of a date; without TensorFlow."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.data_options import ColumnFormat
from accel_engine.data.tables.category_values import truth_words
from accel_engine.data.tables.columns import TableColumn
from accel_engine.errors import DataError

MISSING_TEXT = ""
"""The raw value of a missing category or text. A missing number is NaN."""

NUMBERS = "table_numbers"
"""The key of many numbers as one input of the model, in the order of their columns."""

JOINED_CATEGORIES = "table_categories"
"""The key of many categories as one input of the model: texts such as ``city=Paris``, in any order."""

DATE_PARTS = ("year", "month", "day", "weekday", "hour")
"""Numbers that a date becomes; a week begins with Monday, which is 0."""


@dataclass(frozen=True, slots=True, eq=False)
class RawInput:
    """An input of the preprocessing model."""

    name: str
    """The column's name, with the part of a date: ``age``, ``sold year``."""
    kind: str
    """``number``, ``category`` or ``text``."""
    values: npt.NDArray[Any]
    """float64 ``[n]`` with NaN for missing numbers; otherwise texts, object ``[n]``."""
    key: str
    """Its name in the model, where SavedModels allow letters of ASCII, digits and ``_`` only."""


def raw_inputs(columns: Mapping[str, TableColumn], names: Iterable[str]) -> list[RawInput]:
    """The raw inputs of some columns."""
    found: list[tuple[str, str, npt.NDArray[Any]]] = []
    for name in names:
        column = columns[name]
        if column.kind == "date":
            parts = zip(DATE_PARTS, _date_parts(column.values), strict=True)
            found += [(f"{name} {part}", "number", values) for part, values in parts]
        elif column.values.dtype != object:
            found.append((name, "number", column.values))
        else:
            kind = "text" if column.kind == "text" else "category"
            found.append((name, kind, np.where(column.missing_rows, MISSING_TEXT, column.values)))
    keys = input_keys(name for name, _, _ in found)
    return [RawInput(*each, key) for each, key in zip(found, keys, strict=True)]


def input_keys(names: Iterable[str]) -> list[str]:
    """The keys of inputs by their names, in order; two inputs never have the same."""
    keys: dict[str, None] = {}
    for name in names:
        key = base = input_key(name)
        copy = 2
        while key in keys or key in (NUMBERS, JOINED_CATEGORIES):
            key, copy = f"{base}_{copy}", copy + 1
        keys[key] = None
    return list(keys)


def input_key(name: str) -> str:
    """The key of a column's input, unless another column has it."""
    key = re.sub(r"[^A-Za-z0-9_]", "_", name).strip("_")
    return key if key[:1].isalpha() else f"column_{key}".rstrip("_")


def arrays_of(
    inputs: Sequence[RawInput], types: Mapping[str, str], rows: npt.NDArray[np.intp] | slice = slice(None)
) -> dict[str, npt.NDArray[Any]]:
    """The arrays that a preprocessing model takes.

    Args:
        inputs: The raw inputs, all rows.
        types: NumPy's name of the type of each array, by key; ``string`` for texts.
        rows: The rows that are taken.

    Returns:
        ``[rows, 1]`` each, but for :data:`NUMBERS`, ``[rows, numbers]``, and :data:`JOINED_CATEGORIES`,
        ``[rows, categories]``.
    """
    joined, found = {NUMBERS: "number", JOINED_CATEGORIES: "category"}, dict[str, npt.NDArray[Any]]()
    for key, dtype in types.items():
        own = [each for each in inputs if (each.kind == joined[key] if key in joined else each.key == key)]
        columns = [f"{each.key}=" + each.values if key == JOINED_CATEGORIES else each.values for each in own]
        array = np.stack([column[rows] for column in columns], axis=1)
        found[key] = array if dtype == "string" else array.astype(dtype)
    return found


def check_numbers(source: str, inputs: Sequence[RawInput], wanted: int) -> None:
    """Check that a table has as many numbers as a model takes as :data:`NUMBERS`.

    Args:
        source: The table, for messages.
        inputs: Its raw inputs.
        wanted: How many numbers the model takes so; 0 if it takes each by its name.

    Raises:
        DataError: The table has more or fewer numbers.
    """
    count = sum(each.kind == "number" for each in inputs)
    if wanted and count != wanted:
        raise DataError(
            f"{source} has {count:,} columns of numbers, and the model takes {wanted:,}, in the order of the training "
            "file, without their names: leave out the others"
        )


def formats_for(
    columns: Mapping[str, TableColumn], dtypes: Mapping[str, str], categories: Mapping[str, Sequence[str]]
) -> dict[str, ColumnFormat]:
    """How columns were read for a saved model, as far as its inputs tell.

    Args:
        columns: The columns of a file, as they are without knowing the model.
        dtypes: The types of the model's inputs, by key.
        categories: The categories of inputs, where the model tells them.

    Returns:
        The format of each column that is an input as a whole: a part of a date is not.
    """
    formats = {}
    for raw in raw_inputs(columns, columns):
        known, dtype = categories.get(raw.key), dtypes.get(raw.key)
        if (known is None and dtype is None) or raw.name not in columns:
            continue
        kind = "number" if dtype not in (None, "string") else "text" if known is None else "category"
        formats[raw.name] = ColumnFormat(raw.name, kind, truth_words=truth_words(known or ()) or ())
    return formats


def _date_parts(seconds: npt.NDArray[np.float64]) -> list[npt.NDArray[np.float64]]:
    """The numbers of :data:`DATE_PARTS` for each date; NaN where it is missing."""
    known = np.isfinite(seconds)
    dates = np.where(known, seconds, 0).astype("datetime64[s]")
    days = dates.astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    year = dates.astype("datetime64[Y]").astype(int) + 1970
    month = months.astype(int) % 12 + 1
    day = (days - months).astype(int) + 1
    weekday = (days.astype(int) + 3) % 7  # 1 January 1970 was a Thursday
    hour = (dates - days).astype(int) / 3600
    return [np.where(known, part, np.nan) for part in (year, month, day, weekday, hour)]
