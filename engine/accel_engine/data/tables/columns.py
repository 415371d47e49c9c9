"""Tells the kinds of a table's columns apart, and converts them to NumPy arrays; without TensorFlow."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.data_options import DataOptions, Progress, no_progress
from accel_engine.data.tables.column_format import ColumnFormat
from accel_engine.data.tables.column_names import check_names, declared_kinds
from accel_engine.data.tables.dates import parse_dates, timestamps
from accel_engine.data.tables.table_file import MISSING, read_cells
from accel_engine.errors import DataError

NUMBERS_SHARE = 0.95
"""A column of texts holds numbers, or dates, if at least this share of its values are; the others count as missing."""

FEW_VALUES = 20
"""A column of texts with up to so many different values is a category, unless all of them are numbers or dates."""

TEXT_WORDS = 3
"""Texts have at least so many words on average, if most of them differ."""

MANY_VALUES = 100
"""A column with more values than this, most of which differ, has names or keys rather than categories."""

_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^[+-]?(?i:inf|infinity)$"
_GROUPED_NUMBER = r"^[+-]?\d{1,3}(,\d{3})+(\.\d*)?$"
_BOOLEANS = ({"true", "false"}, {"yes", "no"}, {"t", "f"}, {"y", "n"})
_KEY_NAME = re.compile(r"(?i:(.*[^a-z])?(id|index|idx|key|unnamed: 0|column 1))|.*[a-z]I[dD]")


@dataclass(frozen=True, slots=True, eq=False)
class TableColumn:
    """A column of a table.

    Attributes:
        name: Its name, unique in its file.
        kind: One of :data:`~accel_engine.data.tables.column_names.KINDS`; ``key`` for numbers or names of the rows,
            ``empty`` if all values are missing, ``other`` for lists, bytes and so on.
        values: One value per row: float64 with NaN for numbers; seconds since 1970 as float64 with NaN for dates;
            otherwise an object array of texts with ``None``.
        missing: Number of missing values.
        categories: The different texts, sorted, of a category or a boolean; empty for other kinds.
        integers: Whether all numbers are whole.
        date_format: How dates were written.
        notes: Notes for the user.
    """

    name: str
    kind: str
    values: npt.NDArray[Any]
    missing: int
    categories: tuple[str, ...] = ()
    integers: bool = False
    date_format: str = ""
    notes: tuple[str, ...] = ()

    @property
    def format(self) -> ColumnFormat:
        """How it was read."""
        is_numbered = self.kind == "key" and self.values.dtype != object
        return ColumnFormat(self.name, "number" if is_numbered else self.kind, self.date_format)

    @property
    def missing_rows(self) -> npt.NDArray[np.bool_]:
        """Whether each value is missing, ``[rows]``."""
        if self.values.dtype != object:
            return np.asarray(np.isnan(self.values))
        return np.asarray(np.equal(self.values, np.array(None, object)), bool)


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The columns of a file, or of its first rows.

    Attributes:
        columns: The columns by name, in the order of the file.
        rows: Number of rows that were read.
        complete: Whether these are all rows of the file.
        file_rows: Number of rows of the file; ``None`` if only reading all of it can tell.
        bytes: Size of these rows in the file, about; 0 if unknown.
        invalid: Number of rows that were left out, as they cannot be parsed.
        notes: Notes for the user.
    """

    columns: dict[str, TableColumn]
    rows: int
    complete: bool
    file_rows: int | None
    bytes: int
    invalid: int
    notes: tuple[str, ...]

    @property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The values of each column."""
        return {name: column.values for name, column in self.columns.items()}


def read_columns(
    path: Path,
    options: DataOptions,
    progress: Progress = no_progress,
    *,
    limit: int | None = None,
    like: Mapping[str, TableColumn | ColumnFormat] | None = None,
) -> Columns:
    """Read a CSV, TSV, Parquet or JSON lines file.

    Args:
        path: The file.
        options: Columns that the plan names, their kinds, and whether to skip rows that cannot be parsed.
        progress: Reports the number of rows read.
        limit: Read so many rows at most; all by default.
        like: Columns of the training file, whose kinds this file has.

    Raises:
        DataError: PyArrow is not installed, or the file cannot be read.
        PlanError: The file lacks a column that the plan names, or a kind is unknown.
    """
    cells = read_cells(path, skip_invalid=options.invalid_examples == "skip", limit=limit, progress=progress)
    check_names(options, cells.table.column_names)
    kinds = declared_kinds(options)
    columns = {}
    for name in cells.table.column_names:
        known = (like or {}).get(name)
        kind = known.kind if known else kinds.get(name, "")
        date_format = known.date_format if known else ""
        columns[name] = _convert(name, cells.table[name], kind, date_format, cells.decimal_comma)
    notes = (*cells.notes, *(note for column in columns.values() for note in column.notes))
    return Columns(columns, cells.table.num_rows, cells.complete, cells.rows, cells.bytes, cells.invalid, notes)


def _convert(name: str, cells: Any, kind: str, date_format: str, decimal_comma: bool) -> TableColumn:
    """Convert an Arrow column to a kind; an empty kind is inferred."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import types

    if types.is_dictionary(cells.type):  # such as a categorical column of pandas
        cells, kind = cells.cast(cells.type.value_type), kind or "category"
    if types.is_null(cells.type):
        cells = cells.cast(pa.string())
    if types.is_boolean(cells.type):
        return _texts(name, kind or "boolean", cells.cast(pa.string()))
    if types.is_temporal(cells.type) and not types.is_duration(cells.type) and not types.is_time(cells.type):
        return (
            _dates(name, timestamps(cells), "", 0)
            if kind in ("", "date")
            else _texts(name, kind, cells.cast(pa.string()))
        )
    if types.is_integer(cells.type) or types.is_floating(cells.type) or types.is_decimal(cells.type):
        return _from_numbers(name, kind, pc.cast(cells, pa.float64(), safe=False).to_numpy())
    if types.is_time(cells.type) or types.is_duration(cells.type):
        numbers = cells.cast(pa.int32() if types.is_time32(cells.type) else pa.int64())
        return _from_numbers(name, kind, numbers.cast(pa.float64()).to_numpy())
    if not (types.is_string(cells.type) or types.is_large_string(cells.type)):
        return TableColumn(name, "other", np.full(len(cells), None, object), cells.null_count)
    trimmed = pc.utf8_trim_whitespace(cells)
    missing = pc.is_in(trimmed, value_set=pa.array(MISSING, trimmed.type))
    return _from_texts(
        name, kind, pc.if_else(missing, pa.scalar(None, trimmed.type), trimmed), date_format, decimal_comma
    )


def _from_texts(name: str, kind: str, cells: Any, date_format: str, decimal_comma: bool) -> TableColumn:
    import pyarrow.compute as pc

    known = len(cells) - cells.null_count
    if not kind and not known:
        return TableColumn(name, "empty", np.full(len(cells), None, object), len(cells))
    if kind in ("", "number"):
        numbers, failed = _parse_numbers(cells, decimal_comma)
        enough = not failed or (failed <= (1 - NUMBERS_SHARE) * known and pc.count_distinct(cells).as_py() > FEW_VALUES)
        if kind or enough:
            return _from_numbers(name, kind, numbers, _unparsed(name, "numbers", failed, cells, np.isnan(numbers)))
    if kind in ("", "date"):
        seconds, written, failed = parse_dates(cells, date_format, declared=bool(kind))
        if kind or (written and failed <= (1 - NUMBERS_SHARE) * known):
            return _dates(name, seconds, written, failed, _unparsed(name, "dates", failed, cells, np.isnan(seconds)))
    return _texts(name, kind or _kind_of_texts(cells), cells)


def _kind_of_texts(cells: Any) -> str:
    import pyarrow.compute as pc

    distinct = pc.unique(cells.drop_null())
    if len(distinct) == 2 and {text.lower() for text in distinct.to_pylist()} in _BOOLEANS:
        return "boolean"
    most_differ = len(distinct) > 0.5 * (len(cells) - cells.null_count)
    words = 1 + pc.mean(pc.count_substring_regex(distinct, r"\s+")).as_py()
    if words >= TEXT_WORDS and (most_differ or len(distinct) > 10 * MANY_VALUES):
        return "text"
    return "key" if most_differ and len(distinct) > MANY_VALUES else "category"


def _parse_numbers(cells: Any, decimal_comma: bool) -> tuple[npt.NDArray[np.float64], int]:
    """The numbers, NaN where there is none, and how many texts are none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pc.replace_substring(cells, ",", ".") if decimal_comma else cells
    with suppress(pa.ArrowInvalid):  # ten times as fast
        return texts.cast(pa.float64()).to_numpy(), 0
    if not decimal_comma:
        grouped = pc.match_substring_regex(texts, _GROUPED_NUMBER)
        texts = pc.if_else(grouped, pc.replace_substring(texts, ",", ""), texts)
    valid = pc.match_substring_regex(texts, _NUMBER)
    failed = pc.sum(pc.invert(valid)).as_py() or 0
    return pc.if_else(valid, texts, pa.scalar(None, texts.type)).cast(pa.float64()).to_numpy(), failed


def _unparsed(name: str, noun: str, failed: int, cells: Any, missing: npt.NDArray[np.bool_]) -> tuple[str, ...]:
    """A note on values that are no numbers or dates."""
    if not failed:
        return ()
    row = int(np.flatnonzero(missing & cells.is_valid().to_numpy())[0])
    example = f"such as {cells[row].as_py()[:40]!r} in row {row + 1:,}"
    return (f"{failed:,} values of column {name} are no {noun}, {example}: treated as missing",)


def _from_numbers(name: str, kind: str, numbers: npt.NDArray[np.float64], notes: tuple[str, ...] = ()) -> TableColumn:
    known = numbers[~np.isnan(numbers)]
    integers = bool(len(known)) and bool(np.all(known == np.floor(known))) and bool(np.all(np.isfinite(known)))
    missing = len(numbers) - len(known)
    if kind == "date":
        # Milliseconds are larger than any number of seconds until the year 5138.
        return _dates(name, numbers / 1000 if len(known) and np.abs(known).max() > 1e11 else numbers, "", 0)
    if kind in ("category", "boolean", "text"):
        texts = np.full(len(numbers), None, object)
        values, places = np.unique(known, return_inverse=True)
        names = np.array([str(int(value)) if integers else f"{value:g}" for value in values] or [""], object)
        texts[~np.isnan(numbers)] = names[places]
        return TableColumn(name, kind, texts, missing, tuple(names[: len(values)]) if kind != "text" else ())
    is_key = not kind and not missing and integers and _KEY_NAME.fullmatch(name)
    if is_key and len(numbers) > 1 and np.all(np.diff(numbers) > 0):
        return TableColumn(name, "key", numbers, missing, integers=True)
    return TableColumn(
        name, kind or ("number" if len(known) else "empty"), numbers, missing, integers=integers, notes=notes
    )


def _dates(
    name: str, seconds: npt.NDArray[np.float64], written: str, failed: int, notes: tuple[str, ...] = ()
) -> TableColumn:
    if failed and failed == int(np.isnan(seconds).sum()) == len(seconds):
        raise DataError(
            f"column {name} has no dates that can be read; write them like 2024-12-31 or 2024-12-31 23:59:59"
        )
    return TableColumn(name, "date", seconds, int(np.isnan(seconds).sum()), date_format=written, notes=notes)


def _texts(name: str, kind: str, cells: Any) -> TableColumn:
    """A column of texts. Equal texts are one Python object, so that categories take little memory."""
    encoded = cells.combine_chunks().dictionary_encode()
    if hasattr(encoded, "combine_chunks"):  # a chunked array of several chunks
        encoded = encoded.unify_dictionaries().combine_chunks()
    distinct = encoded.dictionary.to_pylist()
    codes = encoded.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False)
    categories = tuple(sorted(distinct)) if kind in ("category", "boolean") else ()
    return TableColumn(name, kind, np.array([*distinct, None], object)[codes], cells.null_count, categories)
