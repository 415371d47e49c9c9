"""Looks at the text of CSV files: separator and header, and the lines where rows begin and quotes do not end."""

import codecs
import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BufferedReader, RawIOBase, StringIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accel_engine.data.file_kinds import describe_foreign_file
from accel_engine.errors import DataError
from accel_engine.words import numbers

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_SEPARATORS = "\t;|,"
"""In the order of preference: a comma may as well be before a fraction, or in a name."""

MOST_BYTES_OF_ROW = 1 << 22
"""The largest row that can be read; also the bytes in which the first two rows must end."""

_CONVERTED = 1024
"""Rows that are converted at a time."""

_SPECIAL = re.compile(r'"?sep=(.)"?(?:\r\n|\r|\n)', re.IGNORECASE)
"""The first line of a file that names its separator to Excel."""

_COMMENTS = re.compile(r"(?:(?:[#%]|//|; )[^\r\n]*[\r\n]+)+")
"""Lines before the table that some programs write."""

_ROWS_OF_BLANKS = 20
"""Rows that are looked at for blanks between columns."""

_ROWS_BELOW_NAMES = 20
"""Rows whose values tell whether a year in the first row is a name."""

_COMPARED_FIELDS = 100_000
"""Fields, about, that are compared with the first row: a moment also for tables of thousands of columns."""

csv.field_size_limit(MOST_BYTES_OF_ROW)  # where a quote does not close, the rest of a file is one field


@dataclass(frozen=True, slots=True)
class CsvHead:
    """How a file begins."""

    fields: Sequence[str]
    """The fields of its first row that is not empty, and an empty one where rows have one more: at the end if a
    separator ends them, otherwise at the beginning, as R writes the names of rows."""
    separator: str
    """The separator of fields."""
    skipped: int
    """Lines before the first row that is not empty."""
    has_header: bool
    """Whether it has names."""
    before: int
    """How many of the skipped lines are comments, or a title."""
    line_end: str
    """The end of a line."""
    encoding: str
    """Python's name of the encoding of the file."""
    dialect: Mapping[str, Any]
    """Options of Python's reader, if quotes or blanks differ from RFC 4180, which PyArrow reads."""


def read_head(path: Path, encoding: str, *, tabs: bool) -> CsvHead:
    """Detect the header, the separator and the dialect of a file from its beginning.

    Args:
        path: The file.
        encoding: Its encoding.
        tabs: Whether tabs separate fields; otherwise what separates most fields in the first row does, and as many in
            the second one.

    Raises:
        DataError: The file is empty, is not a text, or has no line end in its first bytes.
        UnicodeDecodeError: The file is in another encoding.
    """
    with path.open("rb") as file:
        head = file.read(MOST_BYTES_OF_ROW)
    if found := describe_foreign_file(head):
        raise DataError(f"{path} is {found}")
    text = codecs.getincrementaldecoder(encoding)().decode(head).removeprefix("\ufeff")
    if len(head) == MOST_BYTES_OF_ROW and "\n" not in text and "\r" not in text:
        raise DataError(f"{path} has no line end in its first {numbers.size(MOST_BYTES_OF_ROW)}: it is not a table")
    special = _SPECIAL.match(text)
    start = special.end() if special else 0
    rest = text[start:].lstrip("\r\n")
    if not rest.strip():
        raise DataError(f"{path} is empty")
    before = _comments(rest)
    rest = rest[len("".join(before)) :]
    if not special and (title := _title(rest)):
        before, rest = [*before, *filter(str.strip, title.splitlines())], rest[len(title) :]
    separator = special[1] if special else "\t" if tabs else _separator(rest)
    dialect = _dialect(rest, separator)
    skipped = len(text[: len(text) - len(rest)].splitlines())
    rows = ([*map(str.strip, row)] for row in _read_rows(StringIO(rest, newline=""), separator, dialect))
    first = next(rows)
    below = list(islice(rows, 1 + _COMPARED_FIELDS // len(first)))
    has_header = _is_header(first, below)
    first = [first[0].removeprefix("#").strip() or first[0], *first[1:]]
    if has_header and below and len(below[0]) == len(first) + 1:
        first = [*first, ""] if not below[0][-1] else ["", *first]
    line_end = "\n" if "\n" in text else "\r"
    return CsvHead(first, separator, skipped, has_header, len(before), line_end, encoding, dialect)


def _comments(text: str) -> list[str]:
    """The lines of comments before a table, without a last one that has the names of its columns."""
    found = _COMMENTS.match(text)
    body = text[found.end() :] if found else ""
    if not found or not body.strip():
        return []
    lines = re.findall(r"[^\r\n]+[\r\n]+", found[0])
    separator = _separator(body)
    last, (first, second) = _first_rows(lines[-1], separator)[0], _first_rows(body, separator)
    are_names = len(last) == len(first) and not (
        _is_header(first, [second]) and (len(first) == 1 or _has_values(second))
    )
    return lines[:-1] if are_names else lines


_LINE, _LINE_END = r"[^\r\n]*[\r\n]*", re.compile(r"\r\n|\r|\n")

_TITLE_LINES = 5
"""Lines, at most, above the names of the columns."""


def _title(text: str, most: int = _TITLE_LINES) -> str:
    """The lines of a title above the names of the columns, as reports of spreadsheets have; empty if there is none."""
    line = re.match(_LINE, text)
    body = text[line.end() :] if line else ""
    whole = _first_rows(text, _separator(text))[0]
    if not line or not body.strip() or not most or line[0].count('"') % 2 or sum(map(bool, whole)) > 1:
        return ""
    separator = _separator(body)
    title, (first, second) = _first_rows(line[0], separator)[0], _first_rows(body, separator)
    if sum(map(bool, title)) != 1:
        return ""
    header = re.match(_LINE, body) or line
    is_apart = len(_LINE_END.findall(line[0])) > 1 == len(_LINE_END.findall(header[0]))
    are_fields = len(first) == len(second) > 1 + (not is_apart) and len(title) in (1, len(first))
    are_names = (
        all(first) and _is_header(first, [second]) and not _has_values(each for each in first if not each.isdecimal())
    )
    if are_fields and are_names and (is_apart or _has_values(second)):
        return line[0]
    more = _title(body, most - 1)
    return line[0] + more if more else ""


def _separator(text: str) -> str:
    counts = {}
    for mark in _SEPARATORS:
        first, second = _first_rows(text, mark)
        counts[mark] = len(first) == len(second) > 1, len(first), len(first) == len(second)
    best = max(_SEPARATORS, key=lambda mark: counts[mark])
    return " " if counts[best][:2] == (False, 1) and _has_columns_of_blanks(text) else best


def _has_columns_of_blanks(text: str) -> bool:
    """Whether blanks separate as many fields in each of the first rows, and numbers are among them below the names."""
    rows = [line.split() for line in islice(filter(str.strip, text.splitlines()), _ROWS_OF_BLANKS)]
    have_numbers = all(any(map(_is_number, row)) for row in rows[1:])
    are_grouped = all(re.fullmatch(r"[+-]?\d{1,3}(?: \d{3})+(?:[.,]\d*)?", " ".join(row)) for row in rows[1:])
    return len(rows) > 1 and len({len(row) for row in rows}) == 1 < len(rows[0]) and have_numbers and not are_grouped


def _dialect(text: str, separator: str) -> Mapping[str, Any]:
    """How quotes are written, where not as in RFC 4180, and whether blanks at the start of a field are none of it."""
    mark = re.escape(separator)
    if separator == " " or re.search(rf'{mark} +"[^"\s{mark}]', text):
        return {"skipinitialspace": True}
    if re.search(rf'\\"[^\S\r\n]*[^"\s{mark}]', text):
        return {"escapechar": "\\"}
    return {}


def _first_rows(text: str, separator: str) -> tuple[list[str], list[str]]:
    rows = _read_rows(StringIO(text, newline=""), separator, {})
    return next(rows, []), next(rows, [])


def _read_rows(lines: Iterable[str], separator: str, dialect: Mapping[str, Any]) -> Iterator[list[str]]:
    for row in csv.reader(lines, delimiter=separator, **dialect):
        if any(row) if separator == " " else row:
            yield row[:-1] if separator == " " and not row[-1] else row


def in_standard_form(path: Path, head: CsvHead) -> BufferedReader:
    """Convert a file with another dialect to RFC 4180 and UTF-8, with as many lines before its first row.

    The file is converted while it is read.
    """
    return BufferedReader(_StandardForm(path, head), MOST_BYTES_OF_ROW)


class _StandardForm(RawIOBase):
    def __init__(self, path: Path, head: CsvHead) -> None:
        self._parts = _standard_parts(path, head)
        self._part = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        self._part = self._part or memoryview(next(self._parts, b""))
        room = memoryview(buffer)
        count = min(len(room), len(self._part))
        room[:count], self._part = self._part[:count], self._part[count:]
        return count


def _standard_parts(path: Path, head: CsvHead) -> Iterator[bytes]:
    if head.skipped:
        yield b"\n" * head.skipped
    with path.open(encoding=head.encoding, newline="") as file:
        for _ in range(head.skipped):
            file.readline()
        rows = _read_rows(file, head.separator, head.dialect)
        while some := list(islice(rows, _CONVERTED)):
            text = StringIO(newline="")
            csv.writer(text, delimiter=head.separator).writerows(some)
            yield text.getvalue().encode()


def _is_header(first: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether a first row holds names, by its fields and the rows below it."""
    return _are_names(first, below[:_ROWS_BELOW_NAMES]) and not _recurs(first, below)


def _are_names(first: Sequence[str], below: Iterable[Sequence[str]]) -> bool:
    """Whether no field of a first row is a number, or its numbers count the columns, or are years."""
    figures = [field for field in first if _is_number(field)]
    if not figures:
        return True
    if not all(field.isdecimal() for field in figures):
        return False
    counted = [int(field) for field in figures]
    consecutive = len(figures) > 1 and counted == list(range(counted[0], counted[0] + len(counted)))
    if consecutive and (counted[0] == 0 or len(figures) < len(first)):
        return True
    names = [field for field in first if field not in figures]
    if not names or _has_values(names) or not all(map(_is_year, figures)) or len({*figures}) < len(figures):
        return False
    values = [field for row in below for name, field in zip(first, row, strict=False) if name in figures]
    return not any(map(_is_year, values)) and any(not field.isdecimal() or len(field) > 4 for field in values)


def _recurs(first: Sequence[str], below: Iterable[Sequence[str]]) -> bool:
    """Whether each of several fields is a value of its column in two other rows, so that they are no names."""
    found = [0] * len(first)
    for row in below:
        if len(row) == len(first) and row != first:
            found = [count + (cell == name) for count, cell, name in zip(found, row, first, strict=True)]
    return len(first) > 1 and min(found) > 1


def _is_year(field: str) -> bool:
    return re.fullmatch(r"(1[89]|20)\d\d", field) is not None


def _has_values(row: Iterable[str]) -> bool:
    """Whether a row has a number, a date or the like, however it is written."""
    return any(sum(map(str.isdigit, field)) > sum(map(str.isalpha, field)) for field in row)


def _is_number(field: str) -> bool:
    return re.fullmatch(r"[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", field, re.IGNORECASE) is not None


def check_quotes(path: Path, head: CsvHead) -> None:
    """Raise if a quote does not close, so that the rows after it are a part of its field.

    Raises:
        DataError: A quote is in a field of several lines, and the file ends before another quote, or that opens another
            field, or none of its next :data:`MOST_BYTES_OF_ROW` closes it.
    """
    if line := next((line for line, is_open in _rows(path, head) if is_open), 0):
        raise DataError(
            f"{path}, line {line:,}: the quote does not close, so that the lines after it would be a part of its "
            'field; close it, and write quotes within a field as ""'
        )


def line_of_row(path: Path, head: CsvHead, number: int) -> int:
    """The line where a row begins.

    Args:
        path: The file.
        head: How it begins.
        number: The number of the row, from 1, as PyArrow counts: without empty lines but those before the first row.
    """
    rows = (line for line, _ in _rows(path, head))
    return next((line for place, line in enumerate(rows, head.skipped + 1) if place == number), number)


def _rows(path: Path, head: CsvHead) -> Iterator[tuple[int, bool]]:
    """The first line of each row that is not empty, and whether a quote in it does not close."""
    with path.open(encoding=head.encoding, errors="replace", newline="") as file:
        for _ in range(head.skipped):
            file.readline()
        rows = csv.reader(file, delimiter=head.separator, strict=True, **head.dialect)
        while True:
            before = rows.line_num
            try:
                row = next(rows, None)
            except csv.Error as error:  # within a line, PyArrow takes what follows a quote as a part of the field
                yield head.skipped + before + 1, rows.line_num > before + 1 or "end of data" in str(error)
                continue
            if row is None:
                return
            if row:
                yield head.skipped + before + 1, False
