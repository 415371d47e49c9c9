"""Files that are not read as data: how they are known by their suffix or their first bytes, and what helps."""

from typing import NamedTuple


class _Kind(NamedTuple):
    suffixes: tuple[str, ...]
    begins: tuple[bytes, ...]
    """How the files begin, in lower case."""
    what: str
    """The name of the format, for files with the suffix of a table."""
    cure: str
    """The remedy; empty if there is none."""


_UNPACK = "unpack it first"
_TABLE = "save it as CSV"

_KINDS = (
    _Kind((".gz", ".tgz"), (b"\x1f\x8b",), "packed with gzip", _UNPACK),
    _Kind((".bz2",), (b"bzh",), "packed with bzip2", _UNPACK),
    _Kind((".xz",), (b"\xfd7zxz",), "packed with xz", _UNPACK),
    _Kind((".zst",), (b"\x28\xb5\x2f\xfd",), "packed with zstd", _UNPACK),
    _Kind((".zip", ".tar", ".7z", ".rar"), (), "", _UNPACK),
    _Kind((), (b"pk\x03\x04",), "a ZIP archive or a workbook of a spreadsheet", f"unpack it, or {_TABLE}"),
    _Kind((".xls", ".xlsx", ".ods"), (b"\xd0\xcf\x11\xe0",), "a workbook of a spreadsheet", _TABLE),
    _Kind((), (b"par1",), "a Parquet file", "name it .parquet"),
    _Kind((), (b"<!doctype", b"<html"), "a web page, no table", ""),
    _Kind((), (b"<?xml",), "XML, no table", ""),
    _Kind((), (b"version https://git-lfs",), "a pointer of Git LFS", "git lfs pull fetches it"),
    _Kind((".json",), (), "", "write an object per line, and name it .jsonl"),
    _Kind((".feather", ".arrow", ".orc"), (), "", "save it as Parquet"),
    _Kind((".tab", ".dat", ".data", ".psv"), (), "", "name a table .csv, whatever separates its columns"),
)


def cure_by_suffix(suffix: str) -> str:
    """The remedy for a file of a suffix that is not read, in lower case; empty if unknown."""
    return next((each.cure for each in _KINDS if suffix in each.suffixes), "")


def known_by_bytes(head: bytes) -> str:
    """The kind of a file that should be a table, by its first bytes, with a remedy; empty if it may be a table."""
    begin = head[:99].lstrip().lower()
    found = next((each for each in _KINDS if each.begins and begin.startswith(each.begins)), None)
    if found is None:
        return ""
    return ": ".join(filter(None, (found.what, found.cure)))
