"""Reads the columns of a file: tells the kind of each, and converts its cells to it; without TensorFlow."""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.changes import Change
from accel_engine.data.data_options import (
    PERCENT,
    ColumnFormat,
    DataOptions,
    Notation,
    Progress,
    no_progress,
    without_skip,
)
from accel_engine.data.roles import check_named_columns
from accel_engine.data.tables.category_values import (
    FEW_VALUES,
    MOST,
    Encoded,
    category_column,
    encoded_column,
    kind_of_texts,
)
from accel_engine.data.tables.columns import NUMBERS_SHARE, Columns, TableColumn, are_marks, declared_kinds, unparsed
from accel_engine.data.tables.dates import date_column, date_column_of, dates_of_numbers, seconds_of, timestamps
from accel_engine.data.tables.number_texts import NumberTexts, is_ambiguous, read_numbers, wanted_notation
from accel_engine.data.tables.table_file import MISSING, read_cells, without_empty_end
from accel_engine.errors import DataError
from accel_engine.words import numbers

COUNTED_ROWS = 20
"""Whole numbers in the first column are row numbers, whatever its name, if they count at least this many rows."""

_UNIQUE = 10
"""A note tells that categories hardly repeat if there are more than this."""

_SAMPLE = 1000
"""Values that are looked at first for a decimal mark, and for an example."""

_EXACT = 2**53
"""float64 has whole numbers below this exactly, and rounds no other number to them."""

_KEY_NAME = re.compile(
    r"(?i:(.*[^a-z])?(id|index|idx|key)|unnamed: [\d.]+|row([ _]?(id|num|number|no|nr|names?))?|rownames|no|nr|#"
    r"|__index_level_\d+__)|.*[a-z]I[dD]"
)
_UNNAMED = "column 1"


def read_columns(
    path: Path,
    options: DataOptions,
    progress: Progress = no_progress,
    *,
    limit: int | None = None,
    like: Mapping[str, ColumnFormat] | None = None,
) -> Columns:
    """Read a CSV, TSV, Parquet or JSON lines file.

    Args:
        path: The file.
        options: Columns that the plan names, their kinds, and whether to skip rows that cannot be parsed.
        progress: Reports the number of rows read.
        limit: Read this many rows at most; all by default.
        like: Columns of the training file: this file's are read as the same kinds of values.

    Raises:
        DataError: PyArrow is not installed, the file cannot be read, or a column has no value of its kind.
        PlanError: The file lacks a column that the plan names, or a kind is unknown.
    """
    cells = read_cells(path, skip_invalid=options.invalid_examples == "skip", limit=limit, progress=progress)
    if not like:  # of rows to predict, each has a prediction
        cells = without_empty_end(cells)
    kinds, known = declared_kinds(options), like or {}
    check_named_columns(options, cells.table.column_names)
    wanted = wanted_notation(options)

    def converted(position: int, name: str, comma: bool | None, *, is_settled: bool = False) -> TableColumn:
        may_count = position == 0 and options.window is None
        own = known.get(name)
        kind = kinds.get(name, "")
        orders = name == options.time
        reading = ColumnReading(name, own, kind, wanted, comma, options.missing, may_count, is_settled, orders)
        try:
            return reading.convert(cells.table.column(position))
        except DataError as error:
            raise DataError(f"{path}: {error}") from error

    comma = None if cells.has_semicolons else False
    columns = {name: converted(place, name, comma) for place, name in enumerate(cells.table.column_names)}
    decimals = {column.notation.decimal for column in columns.values() if not column.is_ambiguous} - {""}
    if len(decimals) == 1:  # the other columns tell how a number such as 1.234 is meant
        for place, (name, column) in enumerate(columns.items()):
            if column.is_ambiguous:
                columns[name] = converted(place, name, decimals == {","}, is_settled=True)
    return Columns(
        columns,
        cells.table.num_rows,
        cells.complete,
        cells.rows,
        cells.bytes,
        cells.invalid,
        cells.notes,
        cells.changes,
    )


@dataclass(frozen=True, slots=True)
class ColumnReading:
    """How one column is read."""

    name: str
    known: ColumnFormat | None
    """The training file's column; ``None`` for the training file itself."""
    declared: str
    """The kind that the plan declares; empty if it is inferred."""
    asked: Notation
    """The notation of numbers that the plan asks for."""
    comma: bool | None
    """As in :func:`~accel_engine.data.tables.number_texts.read_numbers`."""
    missing: tuple[str, ...] = ()
    """Texts that the plan declares to mean a missing value."""
    may_count_rows: bool = False
    """Whether it is where row numbers are: the first column of a table that is not a series."""
    is_settled: bool = False
    """Whether other columns tell what ``comma`` is."""
    orders_rows: bool = False
    """Whether it orders the rows, as times of day without a date do not."""

    @property
    def kind(self) -> str:
        """The kind that is wanted; empty if it is inferred."""
        return self.known.kind if self.known else self.declared

    @property
    def wanted(self) -> Notation:
        """What is known of the notation of numbers; what programs wrote does not bind other files."""
        return self.asked if self.known is None or self.known.notation.is_plain else self.known.notation

    def convert(self, cells: Any) -> TableColumn:
        """Convert an Arrow column."""
        named = self.missing or (self.known.missing if self.known else ())
        column = self._converted(cells, named)
        return replace(column, missing_texts=named) if named else column

    def _converted(self, cells: Any, named: tuple[str, ...]) -> TableColumn:
        import pyarrow as pa
        import pyarrow.compute as pc
        from pyarrow import types

        kind = self.kind
        if types.is_dictionary(cells.type):  # such as a categorical column of pandas
            cells, kind = cells.cast(cells.type.value_type), kind or "category"
        if types.is_null(cells.type) or types.is_large_string(cells.type) or types.is_string_view(cells.type):
            cells = cells.cast(pa.string())
        if types.is_floating(cells.type):
            cells = pc.if_else(pc.is_nan(cells), pa.scalar(None, cells.type), cells)
        is_number = types.is_integer(cells.type) or types.is_floating(cells.type) or types.is_decimal(cells.type)
        if types.is_time(cells.type) or types.is_duration(cells.type):
            unit = pa.duration("us") if types.is_duration(cells.type) else pa.time64("us")
            cells, is_number = pc.divide(cells.cast(unit, safe=False).cast(pa.int64()).cast(pa.float64()), 1e6), True
        if types.is_boolean(cells.type):
            return self._from_booleans(cells, kind)
        if types.is_temporal(cells.type):
            return self._from_times(cells, kind)
        if is_number:
            if marks := _numbers_in(named):
                found = pc.is_in(cells.cast(pa.float64(), safe=False), value_set=pa.array(marks, pa.float64()))
                cells = pc.if_else(found, pa.scalar(None, cells.type), cells)
            return self._from_numbers(cells, kind)
        if not types.is_string(cells.type):
            return TableColumn(self.name, "other", np.full(len(cells), None, object), cells.null_count)
        plain = self._plain_numbers(cells, ".") if kind in ("", "number") and not named else None
        if plain and not plain.missing:
            return plain
        trimmed = pc.utf8_trim_whitespace(cells)
        missing = pc.is_in(trimmed, value_set=pa.array((*MISSING, *named), trimmed.type))
        return self._from_texts(pc.if_else(missing, pa.scalar(None, trimmed.type), trimmed), kind)

    def _from_booleans(self, cells: Any, kind: str) -> TableColumn:
        import pyarrow as pa

        if kind == "number":
            return self._numbers(cells.cast(pa.int8()).cast(pa.float64()).to_numpy())
        if kind == "date":
            raise self._other_kind("true and false", "dates")
        return self._categories(encoded_column(cells), cells.null_count, kind or "boolean")

    def _from_times(self, cells: Any, kind: str) -> TableColumn:
        import pyarrow as pa

        if cells.null_count == len(cells):
            return self._from_texts(pa.chunked_array([pa.nulls(len(cells), pa.string())]), kind)
        if kind in ("", "date"):
            return date_column_of(self.name, timestamps(cells), "")
        if kind == "number":
            raise self._other_kind("dates", "numbers")
        cells = cells.cast(pa.timestamp("us", getattr(cells.type, "tz", None)))
        return self._categories(encoded_column(cells), cells.null_count, kind)

    def _from_numbers(self, cells: Any, kind: str) -> TableColumn:
        import pyarrow as pa
        import pyarrow.compute as pc

        numbers = pc.cast(cells, pa.float64(), safe=False).to_numpy()
        if not kind and _lose_digits(cells, numbers):
            return self._codes(cells)
        if kind == "date":
            return dates_of_numbers(self.name, numbers, self.known)
        if kind in ("", "number"):
            return self._numbers(numbers)
        return self._categories(encoded_column(cells), cells.null_count, kind)

    def _from_texts(self, cells: Any, kind: str) -> TableColumn:
        known = len(cells) - cells.null_count
        if not known and kind in ("", "number", "date"):
            if not self.known:
                return TableColumn(self.name, "empty", np.full(len(cells), None, object), len(cells))
            return TableColumn(self.name, kind, np.full(len(cells), np.nan), len(cells))
        encoded, said = None, tuple[Change, ...]()
        if kind in ("", "number"):
            if plain := self._plain_numbers(cells, ".") or self._plain_numbers(cells, ","):
                return plain
            if not self.orders_rows and (seconds := seconds_of(cells)) is not None:
                return self._times(seconds, cells)
            encoded = encoded_column(cells)
            found = self._from_written_numbers(cells, encoded, kind)
            if isinstance(found, TableColumn):
                return found
            said = found
        if kind in ("", "date"):
            dates = date_column(self.name, cells, self.known, is_declared=bool(kind))
            if isinstance(dates, TableColumn):
                return dates
            said = said or dates
        encoded = encoded or encoded_column(cells)
        if kind:
            return self._categories(encoded, cells.null_count, kind)
        column = self._categories(encoded, cells.null_count, kind_of_texts(encoded.texts, known))
        return replace(column, changes=said or _hardly_repeating(column, len(encoded.texts), known))

    def _plain_numbers(self, cells: Any, decimal: str) -> TableColumn | None:
        """Numbers without groups and units, ten times as fast; ``None`` if others are among them, or may be meant."""
        import pyarrow as pa
        import pyarrow.compute as pc

        wanted = self.wanted
        beside = decimal == "." and wanted is not self.asked  # what programs write is read in other files, too
        other = wanted.decimal not in ("", decimal) or wanted.thousands == decimal
        if wanted.unit == PERCENT or (other and not beside):
            return None
        if decimal == "," and pc.any(pc.match_substring(cells, ".")).as_py():
            return None
        try:
            texts = pc.replace_substring(cells, ",", ".") if decimal == "," else cells
            numbers = texts.cast(pa.float64()).to_numpy()
        except pa.ArrowInvalid:
            return None
        padded = None if self.kind else _padded(cells)
        if padded and _have_one_length(cells):
            return self._codes(cells, "digits of one length that begin with zeros")
        may_differ = (beside or not wanted.decimal) and is_ambiguous(cells)
        if may_differ and (beside or (self.comma if decimal == "." else self.comma is False)):
            return None
        if not self.kind and _lose_digits(cells, numbers):
            return self._codes(cells)
        has_mark = any(pc.any(pc.match_substring(some, decimal)).as_py() for some in (cells.slice(0, _SAMPLE), cells))
        column = self._written(
            self._numbers(numbers), cells, Notation(decimal if has_mark else ""), may_differ=may_differ
        )
        if not padded:
            return column
        detail = f"without zeros before them, such as {padded[0].as_py()!r}; --kinds '{self.name}=category' keeps them"
        change = Change("read as numbers", f"values of {self.name}", len(padded), len(cells) - cells.null_count, detail)
        return replace(column, changes=(change, *column.changes))

    def _times(self, seconds: npt.NDArray[np.float64], cells: Any) -> TableColumn:
        """Numbers of times of day or durations."""
        failed = int(np.isnan(seconds).sum()) - cells.null_count
        row = int(np.nanargmax(seconds))
        detail = f"hours:minutes as seconds, such as {cells[row].as_py()} as {seconds[row]:.12g}"
        said = Change("read as numbers", f"values of {self.name}", detail=detail)
        return self._numbers(seconds, (said, *unparsed(self.name, "times", failed, cells, np.isnan(seconds))))

    def _from_written_numbers(self, cells: Any, encoded: Encoded, kind: str) -> "TableColumn | tuple[Change, ...]":
        """Numbers as people write them; if too few texts are numbers, what is to say of those that are."""
        found = read_numbers(encoded.texts, encoded.counts, self.wanted, self.comma, truths=bool(kind))
        is_none = np.isnan(found.values)
        known, failed = int(encoded.counts.sum()), int(encoded.counts[is_none].sum())
        if not failed and not kind and _lose_digits(cells, found.values):
            return self._codes(cells)
        only_marks = failed < known and are_marks(encoded.texts.filter(is_none))
        are_few = failed <= (1 - NUMBERS_SHARE) * known and len(encoded.texts) > FEW_VALUES
        numbers = np.append(found.values, np.nan)[encoded.codes]
        mixed = _other_notation(cells, encoded, found)
        notation = found.notation if self.wanted.is_plain else self.wanted
        noun = f"numbers with {notation}" if mixed or not self.wanted.is_plain else "numbers"
        changes = unparsed(self.name, noun, failed, cells, np.isnan(numbers))
        if kind or not failed or only_marks or are_few:
            column = self._numbers(numbers, changes)
            return self._written(column, cells, found.notation, may_differ=found.is_ambiguous)
        number = f"--kinds '{self.name}=number'"
        if mixed:
            detail = f"{mixed}; write all alike, or {number}, with --decimal and --thousands, reads others as missing"
            return (Change("read as categories", f"values of {self.name}", detail=detail),)
        if 2 * failed > known:
            return ()
        detail = f"{changes[0].detail}; {number} reads such as missing"
        return (Change("read as categories", f"values of {self.name}", failed, known, detail),)

    def _written(self, column: TableColumn, cells: Any, notation: Notation, *, may_differ: bool) -> TableColumn:
        """Numbers with how they are written, and what is to say of it."""
        import pyarrow as pa
        import pyarrow.compute as pc

        changes = column.changes
        is_unclear = may_differ and not (self.is_settled or self.wanted.decimal or self.wanted.thousands)
        if not notation.is_plain or is_unclear:
            read = cells.filter(pa.array(~np.isnan(column.values)))
            marked = read.filter(pc.match_substring_regex(read, r"\d[^\d]|[^\d]\d"))
            example = max((marked if len(marked) else read).slice(0, _SAMPLE).to_pylist(), key=len)
            value = column.values[pc.index(cells, example).as_py()]
            hint = "; --decimal and --thousands say otherwise" if is_unclear else ""
            detail = f"{notation}, such as {example[:40]!r} as {value:.12g}{hint}"
            changes = (Change("read as numbers", f"values of {self.name}", detail=detail), *changes)
        return replace(column, notation=notation, is_ambiguous=is_unclear, changes=changes)

    def _numbers(self, numbers: npt.NDArray[np.float64], changes: tuple[Change, ...] = ()) -> TableColumn:
        known = numbers[~np.isnan(numbers)]
        if changes and not len(known):
            raise DataError(f"{changes[0]}; not one value is a number")
        integers = bool(len(known)) and bool(np.all(known == np.floor(known))) and bool(np.all(np.isfinite(known)))
        missing = len(numbers) - len(known)
        if not self.kind and not missing and integers and self._is_row_number(numbers):
            return TableColumn(self.name, "key", numbers, missing, integers=True)
        kind = "number" if self.kind or len(known) else "empty"
        return TableColumn(self.name, kind, numbers, missing, integers=integers, changes=changes)

    def _is_row_number(self, numbers: npt.NDArray[np.float64]) -> bool:
        """Whether whole numbers tell rows apart and nothing else: a name of keys says so, or they count the rows.

        The first column often has no name, where pandas wrote the index; then the rows may be in another order.
        """
        if len(numbers) > 1 and (
            (_KEY_NAME.fullmatch(self.name) and len(np.unique(numbers)) == len(numbers))
            or (self.name == _UNNAMED and bool(np.all(np.diff(numbers) > 0)))
        ):
            return True
        if not self.may_count_rows or len(numbers) < COUNTED_ROWS:
            return False
        counted = np.sort(numbers) if self.name == _UNNAMED else numbers
        return counted[0] in (0, 1) and bool(np.all(np.diff(counted) == 1))

    def _codes(self, cells: Any, why: str = "whole numbers of more digits than a number keeps") -> TableColumn:
        """Digits that a number would not keep: names of something."""
        import pyarrow as pa

        encoded = encoded_column(cells)
        found = self._categories(encoded, cells.null_count, "category")
        kind = kind_of_texts(pa.array(found.categories, "string"), int(encoded.counts.sum()))
        detail = f"{why}; --kinds '{self.name}=number' reads numbers"
        change = Change("read as categories", f"values of {self.name}", detail=detail)
        return replace(found, kind=kind, categories=found.categories if kind == "category" else (), changes=(change,))

    def _categories(self, encoded: Encoded, missing: int, kind: str) -> TableColumn:
        return category_column(self.name, encoded, missing, kind, self.known, has_commas=self.comma is not False)

    def _other_kind(self, found: str, wanted: str) -> DataError:
        where = "the training data has" if self.known else "the plan wants"
        return DataError(f"column {self.name} has {found}, where {where} {wanted}")


def _other_notation(cells: Any, encoded: Encoded, found: NumberTexts) -> str:
    """A note on texts that are numbers in another notation than the column's; empty without such texts."""
    import pyarrow.compute as pc

    is_none = np.isnan(found.values)
    others = encoded.texts.filter(is_none)
    if is_none.all() or not len(others):
        return ""
    counts = encoded.counts[is_none]
    again = read_numbers(others, counts, Notation(), None, truths=False)
    are_numbers = ~np.isnan(again.values)
    texts, left = others.filter(are_numbers), counts[~are_numbers].sum()
    if not len(texts) or 2 * left > encoded.counts.sum():
        return ""
    read = encoded.texts.filter(~is_none)
    written = [
        f"{text[:40]!r} in row {pc.index(cells, text).as_py() + 1:,} ({notation})"
        for each, notation in ((read, found.notation), (texts, again.notation))
        for text in [max(each.slice(0, _SAMPLE).to_pylist(), key=len)]
    ]
    return f"its numbers are written in several ways, such as {' and '.join(written)}"


def _lose_digits(cells: Any, numbers: npt.NDArray[np.float64]) -> bool:
    """Whether whole numbers beyond 2^53 are fewer different ones as float64."""
    import pyarrow.compute as pc

    known = numbers[np.isfinite(numbers)]
    if not len(known) or np.abs(known).max() < _EXACT or (known != np.floor(known)).any():
        return False
    return len(np.unique(known)) < int(pc.count_distinct(cells, mode="only_valid").as_py())


def _padded(cells: Any) -> Any:
    """The texts with zeros before other digits."""
    import pyarrow.compute as pc

    zeros = pc.filter(cells, pc.starts_with(cells, "0"))
    return pc.filter(zeros, pc.match_substring_regex(zeros, r"^0\d")) if len(zeros) else zeros


def _have_one_length(cells: Any) -> bool:
    """Whether texts are digits of one length, as postcodes and months are written."""
    import pyarrow.compute as pc

    lengths = pc.min_max(pc.utf8_length(cells)).as_py()
    return lengths["min"] == lengths["max"] and bool(pc.all(pc.utf8_is_digit(cells)).as_py())


def _hardly_repeating(column: TableColumn, different: int, known: int) -> tuple[Change, ...]:
    """A note on categories of which most occur once: a model cannot learn from them."""
    if column.kind != "category" or different <= _UNIQUE or different <= MOST * known:
        return ()
    detail = f"{different:,} different ones in {known:,} rows; --ignore '{column.name}' leaves them out"
    return (Change("read as categories", f"values of {column.name}", detail=detail),)


def read_all_rows(path: Path, options: DataOptions, like: Mapping[str, ColumnFormat] | None = None) -> Columns:
    """Read a table; a row that cannot be parsed is an error, as the others would have other numbers without it.

    Raises:
        DataError: The file cannot be read.
    """
    try:
        return read_columns(path, options, like=like)
    except DataError as error:
        raise without_skip(error) from error


def check_columns(path: Path, wanted: Iterable[str], given: Iterable[str]) -> None:
    """Check that a file has the columns that a model needs.

    Raises:
        DataError: Columns are missing; the message names them and the columns of the file.
    """
    given = list(given)
    if lacking := [name for name in wanted if name not in given]:
        noun = numbers.plural(len(lacking), "column")
        raise DataError(
            f"{path.name} has no {noun} {', '.join(lacking)}, which the model needs; it has {', '.join(given)}"
        )


def _numbers_in(texts: tuple[str, ...]) -> list[float]:
    """The numbers among some texts."""
    found = []
    for text in texts:
        with suppress(ValueError):
            found.append(float(text))
    return found
