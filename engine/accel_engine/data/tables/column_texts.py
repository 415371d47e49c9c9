"""Describes the columns of a table, and its first rows, as text; without TensorFlow."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from accel_engine.data.dataset_entry import EntryColumn
from accel_engine.data.tables.columns import Columns, TableColumn
from accel_engine.words import numbers
from accel_engine.words.numbers import percent

_SAMPLES = 5
_SHOWN_COLUMNS = 8
_SHOWN_TEXT = 60


def describe_column(column: TableColumn, role: str) -> EntryColumn:
    """A column with its role, and its range or commonest values."""
    return EntryColumn(column.name, column.kind, role, column.missing, _detail(column))


def _detail(column: TableColumn) -> str:
    """The range of numbers and dates, or the commonest texts with their shares."""
    if column.kind in ("empty", "other"):
        return ""
    known = column.values[~column.missing_rows]
    if column.kind == "date":
        return " to ".join(_date(seconds) for seconds in (known.min(), known.max()))
    if known.dtype != object:
        return f"{numbers.value(known.min())} to {numbers.value(known.max())}" if len(known) else ""
    counts = Counter(known.tolist())
    if column.kind in ("text", "key"):
        return f"{len(counts):,} different"
    common = ", ".join(f"{_short(text, 20)} {percent(count / len(known), 0)}" for text, count in counts.most_common(3))
    return common + (f" and {len(counts) - 3:,} more" if len(counts) > 3 else "")


def sample_rows(table: Columns, inputs: Sequence[str], targets: Sequence[str]) -> list[tuple[str, str]]:
    """The first rows as text: some of the inputs, and the targets."""
    shown = inputs[:_SHOWN_COLUMNS]
    more = ", …" if len(inputs) > len(shown) else ""
    rows = []
    for row in range(min(_SAMPLES, table.rows)):
        left = ", ".join(f"{name}={_cell(table.columns[name], row)}" for name in shown) + more
        right = ", ".join(f"{name}={_cell(table.columns[name], row)}" for name in targets)
        rows.append((f"row {row + 1}", f"{left} → {right}" if right else left))
    return rows


def _cell(column: TableColumn, row: int) -> str:
    value: Any = column.values[row]
    if column.missing_rows[row]:
        return "missing"
    if column.kind == "date":
        return _date(value)
    return _short(value, _SHOWN_TEXT) if isinstance(value, str) else numbers.value(value)


def _date(seconds: float) -> str:
    """A date, with the time of day unless that is midnight."""
    text = str(np.datetime64(round(seconds), "s"))
    return text.removesuffix("T00:00:00").replace("T", " ")


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
