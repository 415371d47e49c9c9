"""Looks at the text of CSV files: separator and header, and the lines where rows begin and quotes do not end."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from accel_engine.errors import DataError
from accel_engine.words import numbers

_SEPARATORS = "\t;|,"
"""In the order of preference: a comma may as well be before a fraction, or in a name."""

_HEAD = 1 << 22
"""Bytes in which the first two rows must end."""

_SPECIAL = re.compile(r'"?sep=(.)"?(?:\r\n|\r|\n)', re.IGNORECASE)
"""The first line of a file that names its separator to Excel."""


@dataclass(frozen=True, slots=True)
class CsvHead:
    """How a file begins.

    Attributes:
        fields: The fields of its first row that is not empty, and an empty one where rows have one more: at the end if
            a separator ends them, otherwise at the beginning, as of R's names of rows.
        separator: What separates fields.
        skipped: Lines before that row.
        has_header: Whether it has names.
        line_end: What ends lines.
    """

    fields: Sequence[str]
    separator: str
    skipped: int
    has_header: bool
    line_end: str


def read_head(path: Path, *, tabs: bool) -> CsvHead:
    """Read how a file begins.

    Args:
        path: The file, in UTF-8.
        tabs: Whether tabs separate fields; otherwise what separates most fields in the first row does, and as many in
            the second one.

    Raises:
        DataError: It is empty, or in UTF-16.
        UnicodeDecodeError: It is in another encoding.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{path} is UTF-16 text; convert it, e.g. with iconv -f utf-16 -t utf-8")
    if len(head) == _HEAD and b"\n" not in head and b"\r" not in head:
        raise DataError(f"{path} has no line end in its first {numbers.size(_HEAD)}: it is no table")
    cut = len(head) if len(head) < _HEAD else max(head.rfind(b"\n"), head.rfind(b"\r")) + 1  # within a character
    text = head[:cut].decode("utf-8-sig")
    special = _SPECIAL.match(text)
    start = special.end() if special else 0
    rest = text[start:].lstrip("\r\n")
    if not rest.strip():
        raise DataError(f"{path} is empty")
    separator = special[1] if special else "\t" if tabs else _separator(rest)
    first, second = (tuple(map(str.strip, row)) for row in _first_rows(rest, separator))
    skipped = len(text[: len(text) - len(rest)].splitlines())
    has_header = _is_header(first)
    if has_header and len(second) == len(first) + 1:
        first = (*first, "") if not second[-1] else ("", *first)
    return CsvHead(first, separator, skipped, has_header, "\n" if "\n" in text else "\r")


def _separator(text: str) -> str:
    counts = {}
    for mark in _SEPARATORS:
        first, second = _first_rows(text, mark)
        counts[mark] = len(first) == len(second) > 1, len(first), len(first) == len(second)
    return max(_SEPARATORS, key=lambda mark: counts[mark])


def _first_rows(text: str, separator: str) -> tuple[list[str], list[str]]:
    first, end = _fields(text, separator)
    return first, _fields(text[end:].lstrip("\r\n"), separator)[0]


def _fields(text: str, separator: str) -> tuple[list[str], int]:
    """The fields of the first row, and where it ends."""
    mark = re.escape(separator)
    pattern = re.compile(rf'(?:"((?:[^"]++|"")*+)")?+([^{mark}\r\n]*+)')
    fields, place = list[str](), 0
    while found := pattern.match(text, place):
        quoted, plain = found.groups()
        fields.append(plain if quoted is None else quoted.replace('""', '"') + plain)
        place = found.end()
        if text[place : place + 1] != separator:
            break
        place += 1
    return fields, place


def _is_header(first: Sequence[str]) -> bool:
    """Whether a first row holds names: none of its fields is a number, or they count the columns or the years."""
    figures = [field for field in first if _is_number(field)]
    if not figures:
        return True
    if len(figures) < 2 or not all(field.isdecimal() for field in figures):
        return False
    counted = [int(field) for field in figures]
    consecutive = counted == list(range(counted[0], counted[0] + len(counted)))
    return consecutive and (counted[0] == 0 or len(figures) < len(first))


def _is_number(field: str) -> bool:
    return re.fullmatch(r"[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", field, re.IGNORECASE) is not None


def check_quotes(path: Path, head: CsvHead) -> None:
    """Raise if a quote does not close, so that the rows after it are a part of its field.

    Raises:
        DataError: It is in a field of several lines, and the file ends before another quote, or that opens another
            field.
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
    """The line of each row that is not empty, until a quote does not close: its line, and that it is so."""
    begun = opened = 0
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, text in enumerate(file, 1):
            if number <= head.skipped or (text == "\n" and not opened):
                continue
            begun = begun if opened else number
            opened, is_wrong = _quote_left(text.removesuffix("\n"), head.separator, number, opened)
            if is_wrong:
                yield opened, True
                return
            if not opened:
                yield begun, False
    if opened:
        yield opened, True


def _quote_left(text: str, separator: str, number: int, opened: int) -> tuple[int, bool]:
    """The line of the quote that is open after a line, 0 if none is; and whether it should have been closed before.

    Args:
        text: The line.
        separator: What separates fields.
        number: The line's number.
        opened: The line of the quote that is open before it.
    """
    place = 0
    while opened or text.find('"', place) >= 0:
        if not opened and text.startswith('"', place):
            opened, place = number, place + 1
        if opened:
            place = _after_quote(text, place)
            if not place:
                return opened, False
            if opened < number and text[place : place + 1] not in ("", separator):
                return opened, True
            opened = 0
        place = text.find(separator, place) + 1
        if not place:
            break
    return 0, False


def _after_quote(text: str, place: int) -> int:
    """The place after the quote that closes a field; 0 if none does."""
    while (place := text.find('"', place) + 1) and text.startswith('"', place):
        place += 1
    return place
