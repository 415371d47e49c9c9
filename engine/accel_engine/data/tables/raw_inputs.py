"""The raw inputs of a table's preprocessing model: one array per column, or per part of a date; without TensorFlow."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.tables.table_column import TableColumn

MISSING_TEXT = ""
"""The raw value of a missing category or text. A missing number is NaN."""

DATE_PARTS = ("year", "month", "day", "weekday", "hour")
"""Numbers that a date becomes; a week begins with Monday, which is 0."""


@dataclass(frozen=True, slots=True, eq=False)
class RawInput:
    """An input of the preprocessing model.

    Attributes:
        name: The column's name, with the part of a date: ``age``, ``sold year``.
        kind: ``number``, ``category`` or ``text``.
        values: float64 ``[n]`` with NaN for missing numbers; otherwise texts, object ``[n]``.
        key: Its name in the model, where TensorFlow allows letters of ASCII, digits, ``_``, ``.`` and ``-`` only.
    """

    name: str
    kind: str
    values: npt.NDArray[Any]
    key: str


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
    inputs: dict[str, RawInput] = {}
    for name, kind, values in found:
        key = base = re.sub(r"[^A-Za-z0-9_.-]", "_", name).lstrip("_-") or "column"
        copy = 2
        while key in inputs:
            key, copy = f"{base}_{copy}", copy + 1
        inputs[key] = RawInput(name, kind, values, key)
    return list(inputs.values())


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
