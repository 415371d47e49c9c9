"""Reads the columns of a file: tells the kind of each, and converts its cells to it; without TensorFlow."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.changes import Change
from accel_engine.data.column_format import ColumnFormat
from accel_engine.data.data_options import DataOptions, Progress, no_progress
from accel_engine.data.tables.category_values import (
    default_words,
    differ_by_zeros,
    in_words,
    normal_texts,
    truth_of,
    truth_words,
)
from accel_engine.data.tables.columns import Columns, TableColumn, check_names, declared_kinds
from accel_engine.data.tables.dates import (
    UNIX,
    is_ambiguous,
    other_format,
    parse_dates,
    readable_format,
    timestamps,
    unix_unit,
)
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

COUNTED_ROWS = 20
"""Whole numbers in the first column that count at least so many rows are their numbers, whatever its name."""

_EXACT = 2**53
"""Whole numbers up to this are exact as float64."""

_DECIMAL_COMMA = re.compile(r"^([+-]?\d+),(\d+)$")
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^[+-]?(?i:inf|infinity)$"
_GROUPED_NUMBER = r"^[+-]?\d{1,3}(,\d{3})+(\.\d*)?$"
_KEY_NAME = re.compile(
    r"(?i:(.*[^a-z])?(id|index|idx|key)|unnamed: \d+|row([ _]?(id|num|number|no|nr|names?))?|rownames|no|nr|#"
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
        limit: Read so many rows at most; all by default.
        like: Columns of the training file: this file's are read as the same kinds of values.

    Raises:
        DataError: PyArrow is not installed, the file cannot be read, or a column has no value of its kind.
        PlanError: The file lacks a column that the plan names, or a kind is unknown.
    """
    cells = read_cells(path, skip_invalid=options.invalid_examples == "skip", limit=limit, progress=progress)
    check_names(options, cells.table.column_names)
    kinds = declared_kinds(options)
    columns = {}
    for position, name in enumerate(cells.table.column_names):
        may_count = position == 0 and options.window is None
        reading = ColumnReading(name, (like or {}).get(name), kinds.get(name, ""), cells.decimal_comma, may_count)
        try:
            columns[name] = reading.convert(cells.table[name])
        except DataError as error:
            raise DataError(f"{path}: {error}") from error
    changes = (*cells.changes, *(change for column in columns.values() for change in column.changes))
    return Columns(
        columns, cells.table.num_rows, cells.complete, cells.rows, cells.bytes, cells.invalid, cells.notes, changes
    )


@dataclass(frozen=True, slots=True)
class ColumnReading:
    """How one column is read.

    Attributes:
        name: Its name.
        known: The training file's column; ``None`` for the training file itself.
        declared: The kind that the plan declares; empty if it is inferred.
        decimal_comma: Whether numbers may be written as ``1,5``.
        may_count_rows: Whether it is where row numbers are: the first column of a table that is no series.
    """

    name: str
    known: ColumnFormat | None
    declared: str
    decimal_comma: bool
    may_count_rows: bool = False

    @property
    def kind(self) -> str:
        """The kind that is wanted; empty if it is inferred."""
        return self.known.kind if self.known else self.declared

    def convert(self, cells: Any) -> TableColumn:
        """Convert an Arrow column."""
        import pyarrow as pa
        import pyarrow.compute as pc
        from pyarrow import types

        kind = self.kind
        if types.is_dictionary(cells.type):  # such as a categorical column of pandas
            cells, kind = cells.cast(cells.type.value_type), kind or "category"
        if types.is_null(cells.type):
            cells = cells.cast(pa.string())
        if types.is_floating(cells.type):
            cells = pc.if_else(pc.is_nan(cells), pa.scalar(None, cells.type), cells)
        is_number = types.is_integer(cells.type) or types.is_floating(cells.type) or types.is_decimal(cells.type)
        if types.is_time(cells.type) or types.is_duration(cells.type):
            cells, is_number = cells.cast(pa.int32() if types.is_time32(cells.type) else pa.int64()), True
        if types.is_boolean(cells.type):
            return self._from_booleans(cells, kind)
        if types.is_temporal(cells.type):
            return self._from_times(cells, kind)
        if is_number:
            return self._from_numbers(cells, kind)
        if not (types.is_string(cells.type) or types.is_large_string(cells.type)):
            return TableColumn(self.name, "other", np.full(len(cells), None, object), cells.null_count)
        trimmed = pc.utf8_trim_whitespace(cells)
        missing = pc.is_in(trimmed, value_set=pa.array(MISSING, trimmed.type))
        return self._from_texts(pc.if_else(missing, pa.scalar(None, trimmed.type), trimmed), kind)

    def _from_booleans(self, cells: Any, kind: str) -> TableColumn:
        import pyarrow as pa

        if kind == "number":
            return self._numbers(cells.cast(pa.int8()).cast(pa.float64()).to_numpy())
        if kind == "date":
            raise self._other_kind("true and false", "dates")
        return self._categories(cells, kind or "boolean")

    def _from_times(self, cells: Any, kind: str) -> TableColumn:
        import pyarrow as pa

        if kind in ("", "date"):
            return self._dates(timestamps(cells), "")
        if kind == "number":
            raise self._other_kind("dates", "numbers")
        return self._categories(cells.cast(pa.timestamp("us", getattr(cells.type, "tz", None))), kind)

    def _from_numbers(self, cells: Any, kind: str) -> TableColumn:
        import pyarrow as pa
        import pyarrow.compute as pc

        numbers = pc.cast(cells, pa.float64(), safe=False).to_numpy()
        if not kind and _lose_digits(cells, numbers):
            return self._codes(cells)
        if kind == "date":
            return self._from_unix_times(numbers)
        return self._categories(cells, kind) if kind not in ("", "number") else self._numbers(numbers)

    def _from_texts(self, cells: Any, kind: str) -> TableColumn:
        import pyarrow.compute as pc

        known = len(cells) - cells.null_count
        if not known and kind in ("", "number", "date"):
            if not self.known:
                return TableColumn(self.name, "empty", np.full(len(cells), None, object), len(cells))
            return TableColumn(self.name, kind, np.full(len(cells), np.nan), len(cells))
        if kind in ("", "number"):
            numbers, failed = _parse_numbers(cells, self.decimal_comma, truths=bool(kind))
            few = failed <= (1 - NUMBERS_SHARE) * known and pc.count_distinct(cells).as_py() > FEW_VALUES
            if kind or not failed or few:
                if not kind and not failed and _lose_digits(cells, numbers):
                    return self._codes(cells)
                return self._numbers(numbers, _unparsed(self.name, "numbers", failed, cells, np.isnan(numbers)))
        if kind in ("", "date") and (found := self._from_written_dates(cells, kind)) is not None:
            return found
        return self._categories(cells, kind or _kind_of_texts(cells))

    def _from_written_dates(self, cells: Any, kind: str) -> TableColumn | None:
        """Dates of texts; ``None`` if they are none and may be something else."""
        known = len(cells) - cells.null_count
        recorded = self.known.date_format if self.known else ""
        if recorded not in UNIX:
            seconds, written, failed = parse_dates(cells, recorded, declared=bool(kind))
            if written and (kind or failed <= (1 - NUMBERS_SHARE) * known) and failed < known:
                changes = _unparsed(self.name, "dates", failed, cells, np.isnan(seconds))
                if failed and self.known:
                    self._refuse_other_format(cells, seconds, written)
                if not recorded and is_ambiguous(cells, written):
                    detail = f"such as {cells.drop_null()[0].as_py()} as {readable_format(written)}"
                    changes += (Change("read as dates", f"values of {self.name}", detail=detail),)
                return self._dates(seconds, written, changes)
        if not kind:
            return None
        numbers, failed = _parse_numbers(cells, self.decimal_comma)
        if failed == known:
            if recorded and recorded not in UNIX:
                self._refuse_other_format(cells, np.full(len(cells), np.nan), recorded)
            raise DataError(
                f"column {self.name} has no dates that can be read, such as {cells.drop_null()[0].as_py()[:40]!r}; "
                f"write them like {'2024-12-31 or 2024-12-31 23:59:59' if not recorded else readable_format(recorded)}"
            )
        return self._from_unix_times(numbers, _unparsed(self.name, "dates", failed, cells, np.isnan(numbers)))

    def _refuse_other_format(self, cells: Any, seconds: npt.NDArray[np.float64], written: str) -> None:
        row, other = other_format(cells, seconds)
        if row >= 0:
            wanted = readable_format(written)
            raise DataError(
                f"column {self.name} has dates in another format than the training data: {cells[row].as_py()!r} in row "
                f"{row + 1:,} is {readable_format(other)}, not {wanted}; write all like {wanted} or 2024-12-31"
            )

    def _from_unix_times(self, numbers: npt.NDArray[np.float64], changes: tuple[Change, ...] = ()) -> TableColumn:
        """Dates of numbers: 20241231, 2024, or the time since 1970."""
        recorded = self.known.date_format if self.known else ""
        unit = recorded if recorded in UNIX else unix_unit(numbers)
        if recorded not in UNIX:
            import pyarrow as pa

            texts = [None if np.isnan(each) else f"{each:.0f}" for each in numbers.tolist()]
            dates = pa.chunked_array([texts], "string")
            seconds, written, failed = parse_dates(dates, recorded, declared=True)
            if written and not failed:
                return self._dates(seconds, written, changes)
        return self._dates(numbers / UNIX[unit], unit, changes)

    def _dates(self, seconds: npt.NDArray[np.float64], written: str, changes: tuple[Change, ...] = ()) -> TableColumn:
        missing = int(np.isnan(seconds).sum())
        return TableColumn(self.name, "date", seconds, missing, date_format=written, changes=changes)

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

    def _codes(self, cells: Any) -> TableColumn:
        """Whole numbers with more digits than numbers keep: names of something."""
        import pyarrow as pa

        found = self._categories(cells, "category")
        kind = _kind_of_texts(pa.chunked_array([found.values.tolist()], "string"))
        why = "whole numbers of more digits than a number keeps"
        change = Change("read as categories", f"values of {self.name}", detail=why)
        return replace(found, kind=kind, categories=found.categories if kind == "category" else (), changes=(change,))

    def _categories(self, cells: Any, kind: str) -> TableColumn:
        """A column of texts. Equal texts are one Python object, so that categories take little memory."""
        encoded = cells.combine_chunks().dictionary_encode()
        if hasattr(encoded, "combine_chunks"):  # a chunked array of several chunks
            encoded = encoded.unify_dictionaries().combine_chunks()
        distinct = self._distinct(encoded.dictionary)
        codes = encoded.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False)
        as_spelled, words = False, tuple[str, ...]()
        if kind != "text":
            texts = [value for value in distinct if isinstance(value, str)]
            as_spelled = self.known.as_spelled if self.known else differ_by_zeros(texts)
            distinct = normal_texts(distinct, as_spelled=as_spelled)
            words = self._truth_words(distinct, kind)
            distinct = in_words(distinct, words)
        else:
            distinct = normal_texts(distinct, as_spelled=True)
        categories = tuple[str, ...]()
        if kind in ("category", "boolean"):
            used = set(distinct)
            categories = tuple(word for word in words if word in used) if used <= set(words) else tuple(sorted(used))
        values = np.array([*distinct, None], object)[codes]
        return TableColumn(self.name, kind, values, cells.null_count, categories, words, as_spelled)

    def _truth_words(self, texts: list[str], kind: str) -> tuple[str, ...]:
        if self.known:
            return self.known.truth_words
        return truth_words(texts) or (default_words(texts) if kind == "boolean" else ())

    def _distinct(self, dictionary: Any) -> list[Any]:
        """The different values, as Python has them."""
        import pyarrow as pa
        from pyarrow import types

        if types.is_float32(dictionary.type) or types.is_float16(dictionary.type):
            return list(dictionary.to_numpy(zero_copy_only=False))  # which print without digits of a float64
        if types.is_timestamp(dictionary.type) and dictionary.type.tz:
            dictionary = dictionary.cast(pa.timestamp("us", "UTC"))
        values: list[Any] = dictionary.to_pylist()
        if self.decimal_comma and types.is_string(dictionary.type):
            return [_DECIMAL_COMMA.sub(r"\1.\2", value) for value in values]
        return values

    def _other_kind(self, found: str, wanted: str) -> DataError:
        where = "the training data has" if self.known else "the plan wants"
        return DataError(f"column {self.name} has {found}, where {where} {wanted}")


def _lose_digits(cells: Any, numbers: npt.NDArray[np.float64]) -> bool:
    """Whether whole numbers beyond 2^53 are fewer different ones as float64."""
    import pyarrow.compute as pc

    known = numbers[np.isfinite(numbers)]
    if not len(known) or np.abs(known).max() <= _EXACT or (known != np.floor(known)).any():
        return False
    return len(np.unique(known)) < int(pc.count_distinct(cells, mode="only_valid").as_py())


def _kind_of_texts(cells: Any) -> str:
    import pyarrow.compute as pc

    distinct = pc.unique(cells.drop_null())
    if len(distinct) <= 2 * FEW_VALUES and (words := truth_words(distinct.to_pylist())) and words[0] != "0":
        return "boolean"
    most_differ = len(distinct) > 0.5 * (len(cells) - cells.null_count)
    words_of_a_text = 1 + pc.mean(pc.count_substring_regex(distinct, r"\s+")).as_py()
    if words_of_a_text >= TEXT_WORDS and (most_differ or len(distinct) > 10 * MANY_VALUES):
        return "text"
    return "key" if most_differ and len(distinct) > MANY_VALUES else "category"


def _parse_numbers(cells: Any, decimal_comma: bool, *, truths: bool = False) -> tuple[npt.NDArray[np.float64], int]:
    """The numbers, NaN where there is none, and how many texts are none; 1 and 0 for true and false if wanted."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pc.replace_substring(cells, ",", ".") if decimal_comma else cells
    with suppress(pa.ArrowInvalid):  # ten times as fast
        return texts.cast(pa.float64()).to_numpy(), 0
    if not decimal_comma:
        grouped = pc.match_substring_regex(texts, _GROUPED_NUMBER)
        texts = pc.if_else(grouped, pc.replace_substring(texts, ",", ""), texts)
    if truths:
        distinct = pc.unique(texts).drop_null().to_pylist()
        known = [text for text in distinct if truth_of(text) is not None]
        for text in known:
            texts = pc.if_else(pc.equal(texts, text), str(int(truth_of(text) or 0)), texts)
    valid = pc.match_substring_regex(texts, _NUMBER)
    failed = pc.sum(pc.invert(valid)).as_py() or 0
    return pc.if_else(valid, texts, pa.scalar(None, texts.type)).cast(pa.float64()).to_numpy(), failed


def _unparsed(name: str, noun: str, failed: int, cells: Any, missing: npt.NDArray[np.bool_]) -> tuple[Change, ...]:
    """Values that are no numbers or dates."""
    if not failed:
        return ()
    row = int(np.flatnonzero(missing & cells.is_valid().to_numpy())[0])
    detail = f"no {noun}, such as {cells[row].as_py()[:40]!r} in row {row + 1:,}"
    return (Change("read as missing", f"values of {name}", failed, len(cells) - cells.null_count, detail),)
