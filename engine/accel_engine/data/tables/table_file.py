"""Reads the cells of CSV, TSV, Parquet and JSON lines files with PyArrow; without TensorFlow."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from accel_engine.arrow import import_pyarrow
from accel_engine.data.changes import Change
from accel_engine.data.characters import UTF_8, WESTERN, encoding_name, encoding_of
from accel_engine.data.data_options import Progress, no_progress, or_skip
from accel_engine.data.tables import csv_text
from accel_engine.errors import DataError
from accel_engine.files import regular
from accel_engine.memory import available_memory
from accel_engine.words import numbers

MISSING = (
    "", "?", "NA", "N/A", "n/a", "<NA>", "NaN", "-NaN", "nan", "-nan", "NaT", "NULL", "null", "None", "1.#IND",
    "-1.#IND", "1.#QNAN", "-1.#QNAN", "\\N", "#N/A", "#N/A N/A", "#NA", "#NV", "#DIV/0!", "#REF!", "#NAME?", "#NULL!",
    "#NUM!", "#VALUE!", "#BEZUG!", "#WERT!", "#ZAHL!", "#ERROR!", "#CALC!", "#SPILL!", "#GETTING_DATA",
)  # fmt: skip
"""Texts that stand for a missing value, as pandas and spreadsheets write it, after blanks around them are removed."""

SUFFIXES = (".csv", ".tsv", ".parquet", ".jsonl", ".ndjson")
"""The suffixes of tables."""

_FIRST_BLOCK = 1 << 20
"""Bytes of a CSV file that are parsed at a time where only its first rows are read; else as many as a row may have."""

_BATCH = 1 << 16
"""Rows of a Parquet file read at a time."""


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of a file as they are stored."""

    table: Any
    """A :class:`pyarrow.Table` with unique column names; all cells of a CSV file are texts."""
    complete: bool = True
    """Whether these are all rows of the file."""
    rows: int | None = None
    """Number of rows of the file; ``None`` if only reading all of it can tell."""
    bytes: int = 0
    """Size of these rows in the file, about; 0 if unknown."""
    invalid: int = 0
    """Number of rows that were left out, as they cannot be parsed."""
    has_semicolons: bool = False
    """Whether semicolons separate its cells, as where numbers have decimal commas."""
    notes: tuple[str, ...] = ()
    """Notes for the user."""
    changes: tuple[Change, ...] = ()
    """The rows that were left out."""


def read_cells(path: Path, *, skip_invalid: bool, limit: int | None = None, progress: Progress = no_progress) -> Cells:
    """Read a file, or its first rows.

    Args:
        path: A file that ends with ``.csv``, ``.tsv``, ``.parquet``, ``.jsonl`` or ``.ndjson``.
        skip_invalid: Whether rows that cannot be parsed are left out; otherwise they are an error.
        limit: Read this many rows at most; all by default.
        progress: Reports the number of rows read.

    Raises:
        DataError: PyArrow is not installed, or the file cannot be read or has no rows.
    """
    suffix = path.suffix.lower()
    with _errors_named(path):
        regular(path)
        if suffix == ".parquet":
            cells = _read_parquet(path, limit, progress)
        elif suffix in (".jsonl", ".ndjson"):
            cells = _read_text(path, partial(_read_json, path, skip_invalid, limit))
        else:
            cells = _read_text(path, partial(_read_csv, path, suffix == ".tsv", skip_invalid, limit, progress))
        if not cells.table.num_rows:
            raise DataError(f"{path} has no rows{' that can be parsed' if cells.invalid else ''}")
        if cells.invalid:
            change = Change("left out", f"rows of {path.name}", cells.invalid, detail="they cannot be parsed")
            return replace(cells, changes=(*cells.changes, change))
        return cells


@contextmanager
def _errors_named(path: Path) -> Iterator[None]:
    """Raise the errors of PyArrow, of the system and of decoding as a :class:`DataError` with the file's name."""
    pa = import_pyarrow(path)
    try:
        yield
    except (UnicodeDecodeError, pa.ArrowInvalid) as error:
        if _is_encoding(error):
            raise DataError(f"{path} is not text in UTF-8, UTF-16 or Windows-1252: save it as UTF-8") from error
        raise DataError(f"{path} cannot be read: {error}") from error
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    except MemoryError as error:
        raise DataError(f"{path} does not fit in memory") from error


def _is_encoding(error: Exception) -> bool:
    """Whether an error of a reader is about the encoding of a text."""
    return isinstance(error, UnicodeDecodeError) or "UTF8" in str(error)


def _read_text(path: Path, read: Callable[[str], Cells]) -> Cells:
    """Read a file in the encoding that its first bytes tell, else UTF-8, else Windows-1252, which extends Latin-1.

    Args:
        path: The file.
        read: Reads it in an encoding.
    """
    import pyarrow as pa

    with path.open("rb") as file:
        encoding = encoding_of(file.read(4))
    try:
        cells = read(encoding)
    except (UnicodeDecodeError, pa.ArrowInvalid) as error:
        if encoding != UTF_8 or not _is_encoding(error):
            raise
        encoding = WESTERN
        cells = read(encoding)
    if encoding == UTF_8:
        return cells
    return replace(cells, changes=(_converted(cells, path, encoding), *cells.changes))


def _converted(cells: Cells, path: Path, encoding: str) -> Change:
    """The note on a file in another encoding than UTF-8."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = [column for column in cells.table.columns if pa.types.is_string(column.type)]
    others = [column.filter(pc.invert(pc.string_is_ascii(column))) for column in texts]
    example = next((f", such as {column[0].as_py()[:40]!r}" for column in others if len(column)), "")
    what, total = f"cells of {path.name} with letters outside ASCII", cells.table.num_rows * cells.table.num_columns
    count = sum(len(column) - column.null_count for column in others)
    hint = "; save it as UTF-8 if letters are wrong" if encoding == WESTERN else ""
    detail = f"from {encoding_name(encoding)}{example}{hint}"
    return Change("converted", what, count, total, detail, not cells.complete)


def _read_parquet(path: Path, limit: int | None, progress: Progress) -> Cells:
    import pyarrow as pa
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        total = file.metadata.num_rows
        batches, done = [], 0
        for batch in _within_memory(path, file.iter_batches(min(_BATCH, limit or _BATCH))):
            batches.append(batch)
            done += batch.num_rows
            progress(done, total)
            if limit is not None and done >= limit:
                break
        table = pa.Table.from_batches(batches, file.schema_arrow).slice(0, limit)
    table = _flat(table)
    names, notes = _unique(table.column_names)
    return Cells(table.rename_columns(names), table.num_rows == total, total, notes=notes)


def _flat(table: Any) -> Any:
    """A table with the fields of objects as columns, such as ``address.city``."""
    from pyarrow import types

    while any(types.is_struct(column) for column in table.schema.types):
        table = table.flatten()
    return table


def _within_memory(path: Path, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the batches of a file as long as all of them fit in memory: a small file may hold a huge table."""
    free, size, rows = available_memory(), 0, 0
    for batch in batches:
        size, rows = size + batch.nbytes, rows + batch.num_rows
        if size > free:
            taken = f"its first {numbers.counted(rows, 'row')} take {numbers.size(size)}"
            raise DataError(f"{path} does not fit in memory: {taken}, and {numbers.size(free)} are available")
        yield batch


def _read_json(path: Path, skip_invalid: bool, limit: int | None, encoding: str) -> Cells:
    """PyArrow's reader is fast; line by line reads the first lines only, mixed types, and names an invalid line."""
    import pyarrow as pa
    from pyarrow import json as arrow_json

    if limit is None and encoding == UTF_8:
        try:
            table = _flat(arrow_json.read_json(path))
            table.validate(full=True)  # the encoding of its texts
            names, notes = _unique(table.column_names)
            return Cells(table.rename_columns(names), rows=table.num_rows, notes=notes)
        except pa.ArrowInvalid:
            pass
    columns: dict[str, list[Any]] = {}
    rows = size = invalid = 0
    complete = True
    with path.open(encoding=encoding) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            if limit is not None and rows >= limit:
                complete = False
                break
            try:
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise ValueError('not an object such as {"age": 38}')  # noqa: TRY004 (handled below)
            except (ValueError, RecursionError) as error:  # a RecursionError for lists within lists
                if not skip_invalid:
                    raise DataError(f"{path}, line {number}: {error}") from error
                invalid += 1
                continue
            for name in row:
                columns.setdefault(name, [None] * rows)
            for name, values in columns.items():
                values.append(row.get(name))
            rows += 1
            size += len(line)
    table = _flat(pa.table({name: _json_column(values) for name, values in columns.items()}))
    names, notes = _unique(table.column_names)
    return Cells(table.rename_columns(names), complete, rows if complete else None, size, invalid, notes=notes)


def _json_column(values: list[Any]) -> Any:
    """A column of one type; values of different types become texts."""
    import pyarrow as pa

    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([value if value is None or isinstance(value, str) else json.dumps(value) for value in values])


def _read_csv(
    path: Path, tabs: bool, skip_invalid: bool, limit: int | None, progress: Progress, encoding: str
) -> Cells:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    head = csv_text.read_head(path, encoding, tabs=tabs)
    names, notes = _unique(head.fields if head.has_header else [""] * len(head.fields))
    if not head.has_header:
        notes = (f"{path.name} has no header: its columns are called column 1 to column {len(names)}",)
    invalid: list[Any] = []

    def note_invalid(row: Any) -> str:
        if row.text and not row.text.strip():
            return "skip"
        invalid.append(row)
        return "skip" if skip_invalid else "error"

    batches, done, complete = [], 0, True
    try:
        # One thread: only then PyArrow counts rows. All cells are texts, as types that are inferred from the first
        # block may not fit later ones.
        reader = arrow_csv.open_csv(
            csv_text.in_standard_form(path, head) if head.dialect else path,
            read_options=arrow_csv.ReadOptions(
                column_names=names,
                skip_rows=head.skipped,
                skip_rows_after_names=int(head.has_header),
                use_threads=False,
                block_size=csv_text.MOST_BYTES_OF_ROW if limit is None else _FIRST_BLOCK,
                encoding="utf8" if head.dialect or encoding == UTF_8 else encoding,  # which is not decoded twice
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=head.separator, newlines_in_values=True, invalid_row_handler=note_invalid
            ),
            convert_options=arrow_csv.ConvertOptions(default_column_type=pa.string(), strings_can_be_null=False),
        )
        for batch in _within_memory(path, reader):
            batches.append(batch)
            done += batch.num_rows
            progress(done, 0)
            if limit is not None and done >= limit:
                complete, done = done == limit and not any(reader), limit
                break
    except (pa.ArrowInvalid, csv.Error) as error:
        csv_text.check_quotes(path, head)
        if "straddling" in str(error) or isinstance(error, csv.Error):
            if path.stat().st_size <= _FIRST_BLOCK:  # a header alone, whose line has no end
                raise DataError(f"{path} has no rows") from error
            raise DataError(f"{path} has a row of more than {numbers.size(csv_text.MOST_BYTES_OF_ROW)}") from error
        if not invalid or skip_invalid:
            raise
        raise _wrong_row(path, head, invalid[-1]) from None
    table = pa.Table.from_batches(batches, reader.schema).slice(0, limit)
    if any(head.line_end in (row.text or "") for row in invalid) or _has_lines(table, head.line_end):
        csv_text.check_quotes(path, head)
    changes = (Change("left out", "lines before the table", head.before),) if head.before else ()
    size = table.nbytes - 3 * done * len(names)  # an offset of 4 bytes for each cell, instead of a separator
    return Cells(table, complete, done if complete else None, size, len(invalid), head.separator == ";", notes, changes)


def without_empty_end(cells: Cells) -> Cells:
    """Cells without rows at the end that have no value, as spreadsheets write them."""
    table = cells.table
    rows = enumerate(range(table.num_rows - 1, -1, -1))
    found = (empty for empty, row in rows if any(column[row].as_py() not in ("", None) for column in table.columns))
    empty = next(found, 0) if cells.complete and table.num_columns > 1 else 0
    if not empty:
        return cells
    change = Change("left out", "rows at the end", empty, detail="all their cells are empty")
    table, rows_left = table.slice(0, table.num_rows - empty), cells.rows and cells.rows - empty
    return replace(cells, table=table, rows=rows_left, changes=(*cells.changes, change))


def _has_lines(table: Any, line_end: str) -> bool:
    """Whether a cell has several lines."""
    import pyarrow.compute as pc

    return any(pc.any(pc.match_substring(column, line_end)).as_py() for column in table.columns)


def _wrong_row(path: Path, head: csv_text.CsvHead, row: Any) -> DataError:
    text = (row.text or "")[:80]
    found = f"{row.actual_columns} fields instead of {row.expected_columns}: {text!r}"
    return or_skip(DataError(f"{path}, line {csv_text.line_of_row(path, head, row.number):,}: {found}"), "such rows")


def _unique(names: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Name columns without a name by their position, and make duplicates differ."""
    unique: dict[str, None] = {}  # in order
    duplicates: list[str] = []
    for position, name in enumerate(names, 1):
        candidate = base = name.strip() or f"column {position}"
        copy = 2
        while candidate in unique:
            candidate, copy = f"{base} ({copy})", copy + 1
        if candidate != base:
            duplicates.append(candidate)
        unique[candidate] = None
    return list(unique), (f"columns with the same name are called {', '.join(duplicates[:5])}",) if duplicates else ()
