"""Reads the columns of a file: tells the kind of each, and converts its cells to it; without TensorFlow."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.changes import Change
from accel_engine.data.column_format import PERCENT, ColumnFormat, Notation
from accel_engine.data.data_options import DataOptions, Progress, no_progress
from accel_engine.data.tables.category_values import (
    default_words,
    differ_by_zeros,
    in_words,
    normal_texts,
    truth_words,
)
from accel_engine.data.tables.columns import Columns, TableColumn, check_names, declared_kinds
from accel_engine.data.tables.dates import (
    UNIX,
    is_day_or_month,
    other_format,
    parse_dates,
    readable_format,
    timestamps,
    unix_unit,
)
from accel_engine.data.tables.number_texts import is_ambiguous, read_numbers, wanted_notation
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

NUMBER_MARKS = frozenset(
    ("-", "--", "---", "\u2013", "\u2014", ".", "..", "...", "*", "**", "#", "none", "n.a.", "N.A.", "n.d.", "nd", "ND",
     "k.A.", "unknown", "Unknown", "missing", "Missing", "nil")
)  # fmt: skip
"""Texts that mean a missing value where all others are numbers."""

_MAX_MARKS = 5
"""A column has at most so many different ones."""

_MOST = 0.5
"""Most values of a column differ if more of them do than this share."""

_UNIQUE = 10
"""Categories that hardly repeat are said if there are more than this."""

_SAMPLE = 1000
"""Values that are looked at for a decimal mark."""

_EXACT = 2**53
"""Whole numbers up to this are exact as float64."""

_DECIMAL_COMMA = re.compile(r"^([+-]?\d+),(\d+)$")
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
    kinds, known = declared_kinds(options), like or {}
    wanted = wanted_notation(options)

    def converted(position: int, name: str, comma: bool | None, *, is_settled: bool = False) -> TableColumn:
        may_count = position == 0 and options.window is None
        own = known.get(name)
        kind = kinds.get(name, "")
        reading = ColumnReading(name, own, kind, wanted, comma, options.missing, may_count, is_settled)
        try:
            return reading.convert(cells.table[name])
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
    """How one column is read.

    Attributes:
        name: Its name.
        known: The training file's column; ``None`` for the training file itself.
        declared: The kind that the plan declares; empty if it is inferred.
        asked: The notation of numbers that the plan asks for.
        comma: As of :func:`~accel_engine.data.tables.number_texts.read_numbers`.
        missing: Texts that the plan declares to mean a missing value.
        may_count_rows: Whether it is where row numbers are: the first column of a table that is no series.
        is_settled: Whether other columns tell what ``comma`` is.
    """

    name: str
    known: ColumnFormat | None
    declared: str
    asked: Notation
    comma: bool | None
    missing: tuple[str, ...] = ()
    may_count_rows: bool = False
    is_settled: bool = False

    @property
    def kind(self) -> str:
        """The kind that is wanted; empty if it is inferred."""
        return self.known.kind if self.known else self.declared

    @property
    def wanted(self) -> Notation:
        """What is known of the notation of numbers; that of programs does not bind other files."""
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
        return self._categories(_encoded(cells), cells.null_count, kind or "boolean")

    def _from_times(self, cells: Any, kind: str) -> TableColumn:
        import pyarrow as pa

        if kind in ("", "date"):
            return self._dates(timestamps(cells), "")
        if kind == "number":
            raise self._other_kind("dates", "numbers")
        cells = cells.cast(pa.timestamp("us", getattr(cells.type, "tz", None)))
        return self._categories(_encoded(cells), cells.null_count, kind)

    def _from_numbers(self, cells: Any, kind: str) -> TableColumn:
        import pyarrow as pa
        import pyarrow.compute as pc

        numbers = pc.cast(cells, pa.float64(), safe=False).to_numpy()
        if not kind and _lose_digits(cells, numbers):
            return self._codes(cells)
        if kind == "date":
            return self._from_unix_times(numbers)
        if kind in ("", "number"):
            return self._numbers(numbers)
        return self._categories(_encoded(cells), cells.null_count, kind)

    def _from_texts(self, cells: Any, kind: str) -> TableColumn:
        known = len(cells) - cells.null_count
        if not known and kind in ("", "number", "date"):
            if not self.known:
                return TableColumn(self.name, "empty", np.full(len(cells), None, object), len(cells))
            return TableColumn(self.name, kind, np.full(len(cells), np.nan), len(cells))
        encoded, mixed = None, tuple[Change, ...]()
        if kind in ("", "number"):
            if plain := self._plain_numbers(cells, ".") or self._plain_numbers(cells, ","):
                return plain
            encoded = _encoded(cells)
            found = self._from_written_numbers(cells, encoded, kind)
            if isinstance(found, TableColumn):
                return found
            mixed = found
        if kind in ("", "date") and (dates := self._from_written_dates(cells, kind)) is not None:
            return dates
        encoded = encoded or _encoded(cells)
        if kind:
            return self._categories(encoded, cells.null_count, kind)
        column = self._categories(encoded, cells.null_count, _kind_of_texts(encoded.texts, known))
        return replace(column, changes=mixed or _hardly_repeating(column, len(encoded.texts), known))

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
        may_differ = (beside or not wanted.decimal) and is_ambiguous(cells)
        if may_differ and (beside or (self.comma if decimal == "." else self.comma is False)):
            return None
        if not self.kind and _lose_digits(cells, numbers):
            return self._codes(cells)
        has_mark = pc.any(pc.match_substring(cells.slice(0, _SAMPLE), decimal)).as_py()
        return self._written(
            self._numbers(numbers), cells, Notation(decimal if has_mark else ""), may_differ=may_differ
        )

    def _from_written_numbers(self, cells: Any, encoded: "_Encoded", kind: str) -> "TableColumn | tuple[Change, ...]":
        """Numbers as people write them; if too few texts are numbers, what is to say of those that are."""
        found = read_numbers(encoded.texts, encoded.counts, self.wanted, self.comma, truths=bool(kind))
        is_none = np.isnan(found.values)
        known, failed = int(encoded.counts.sum()), int(encoded.counts[is_none].sum())
        if not failed and not kind and _lose_digits(cells, found.values):
            return self._codes(cells)
        others = encoded.texts.filter(is_none).to_pylist() if 0 < is_none.sum() <= _MAX_MARKS else []
        are_marks = failed < known and bool(others) and all(text in NUMBER_MARKS for text in others)
        are_few = failed <= (1 - NUMBERS_SHARE) * known and len(encoded.texts) > FEW_VALUES
        numbers = np.append(found.values, np.nan)[encoded.codes]
        noun = "numbers" if self.wanted.is_plain else f"numbers with {self.wanted}"
        changes = _unparsed(self.name, noun, failed, cells, np.isnan(numbers))
        if kind or not failed or are_marks or are_few:
            column = self._numbers(numbers, changes)
            return self._written(column, cells, found.notation, may_differ=found.is_ambiguous)
        if 2 * failed > known:
            return ()
        detail = f"{changes[0].detail}; --kinds '{self.name}=number' reads such as missing"
        return (Change("read as categories", f"values of {self.name}", failed, known, detail),)

    def _written(self, column: TableColumn, cells: Any, notation: Notation, *, may_differ: bool) -> TableColumn:
        """Numbers with how they are written, and what is to say of it."""
        import pyarrow.compute as pc

        changes = column.changes
        is_unclear = may_differ and not (self.is_settled or self.wanted.decimal or self.wanted.thousands)
        if not notation.is_plain or is_unclear:
            marked = cells.filter(pc.match_substring_regex(cells, r"\d[^\d]|[^\d]\d"))
            example = max((marked if len(marked) else cells.drop_null()).slice(0, _SAMPLE).to_pylist(), key=len)
            read = column.values[pc.index(cells, example).as_py()]
            hint = "; --decimal and --thousands say otherwise" if is_unclear else ""
            detail = f"{notation}, such as {example[:40]!r} as {read:.12g}{hint}"
            changes = (Change("read as numbers", f"values of {self.name}", detail=detail), *changes)
        return replace(column, notation=notation, is_ambiguous=is_unclear, changes=changes)

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
                if not recorded and is_day_or_month(cells, written):
                    detail = f"such as {cells.drop_null()[0].as_py()} as {readable_format(written)}"
                    changes += (Change("read as dates", f"values of {self.name}", detail=detail),)
                return self._dates(seconds, written, changes)
        if not kind:
            return None
        encoded = _encoded(cells)
        values = read_numbers(encoded.texts, encoded.counts, Notation(), False, truths=False).values
        numbers = np.append(values, np.nan)[encoded.codes]
        failed = known - int((~np.isnan(numbers)).sum())
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

        encoded = _encoded(cells)
        found = self._categories(encoded, cells.null_count, "category")
        kind = _kind_of_texts(pa.array(found.categories, "string"), int(encoded.counts.sum()))
        why = "whole numbers of more digits than a number keeps"
        change = Change("read as categories", f"values of {self.name}", detail=why)
        return replace(found, kind=kind, categories=found.categories if kind == "category" else (), changes=(change,))

    def _categories(self, encoded: "_Encoded", missing: int, kind: str) -> TableColumn:
        """A column of texts. Equal texts are one Python object, so that categories take little memory."""
        distinct = self._distinct(encoded.texts)
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
        values = np.array([*distinct, None], object)[encoded.codes]
        return TableColumn(self.name, kind, values, missing, categories, words, as_spelled)

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
        if self.comma is not False and types.is_string(dictionary.type):
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


@dataclass(frozen=True, slots=True, eq=False)
class _Encoded:
    """An Arrow column by its different values.

    Attributes:
        texts: They, in the order of their first occurrence; an Arrow array.
        codes: The place of each row's value, ``[rows]``; the number of values where it is missing.
        counts: How often each occurs.
    """

    texts: Any
    codes: npt.NDArray[np.integer[Any]]
    counts: npt.NDArray[np.integer[Any]]


def _encoded(cells: Any) -> _Encoded:
    array = cells.combine_chunks().dictionary_encode()
    if hasattr(array, "combine_chunks"):  # a chunked array of several chunks
        array = array.unify_dictionaries().combine_chunks()
    size = len(array.dictionary)
    codes = array.indices.fill_null(size).to_numpy(zero_copy_only=False)
    return _Encoded(array.dictionary, codes, np.bincount(codes, minlength=size + 1)[:size])


def _kind_of_texts(distinct: Any, known: int) -> str:
    """The kind of a column of different texts, of which it has so many values."""
    import pyarrow.compute as pc

    if len(distinct) <= 2 * FEW_VALUES and (words := truth_words(distinct.to_pylist())) and words[0] != "0":
        return "boolean"
    most_differ = len(distinct) > _MOST * known
    words_of_a_text = 1 + pc.mean(pc.count_substring_regex(distinct, r"\s+")).as_py()
    if words_of_a_text >= TEXT_WORDS and (most_differ or len(distinct) > 10 * MANY_VALUES):
        return "text"
    return "key" if most_differ and len(distinct) > MANY_VALUES else "category"


def _hardly_repeating(column: TableColumn, different: int, known: int) -> tuple[Change, ...]:
    """What is said of categories of which most occur once: they tell nothing of other rows."""
    if column.kind != "category" or different <= _UNIQUE or different <= _MOST * known:
        return ()
    detail = f"{different:,} different ones in {known:,} rows; --ignore '{column.name}' leaves them out"
    return (Change("read as categories", f"values of {column.name}", detail=detail),)


def _unparsed(name: str, noun: str, failed: int, cells: Any, missing: npt.NDArray[np.bool_]) -> tuple[Change, ...]:
    """Values that are no numbers or dates."""
    if not failed:
        return ()
    row = int(np.flatnonzero(missing & cells.is_valid().to_numpy())[0])
    detail = f"no {noun}, such as {cells[row].as_py()[:40]!r} in row {row + 1:,}"
    return (Change("read as missing", f"values of {name}", failed, len(cells) - cells.null_count, detail),)
