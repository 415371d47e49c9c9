"""Reads the rows of a damaged ``run.db`` that SQLite can still reach, from a copy of the file."""

import os
import sqlite3
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from accel_engine.errors import file_errors
from accel_engine.run.store.database import DATABASE, create_file

Row = tuple[Any, ...]

_LOG = f"{DATABASE}-wal"
"""SQLite's file with what is not yet in the database."""

_HEADER = 100
"""Bytes of the header of a file of SQLite, before the first page's tree."""

_PAGE_SIZE, _PAGES = slice(16, 18), slice(28, 32)
"""Where the header has the bytes of a page, and the number of pages; big-endian."""

_FREE_PAGES = slice(32, 40)

_SMALLEST_ROW = 16  # bytes

_BLOCK = 1 << 12
"""Bytes that are copied at once: a page."""

_MAX_FAILURES = 50_000
"""Reads of a table that may fail: each takes some microseconds."""


class DamagedFile:
    """A copy of a damaged database, opened to be read row by row.

    Attributes:
        most_rows: How many rows it may have at most.
    """

    def __init__(self, database: sqlite3.Connection, size: int) -> None:
        self._database = database
        self.most_rows = size // _SMALLEST_ROW

    def columns(self, table: str) -> list[str] | None:
        """The columns of a table; empty if it is missing, ``None`` if it may be there."""
        with suppress(sqlite3.DatabaseError):
            found = [row[1] for row in self._database.execute(f"PRAGMA table_info({table})")]
            if not found:
                self._database.execute("SELECT name FROM sqlite_master").fetchall()  # fails if tables are unreadable
            return found
        return None

    def value(self, table: str, columns: Sequence[str], key: str) -> Row | None:
        """The row of a table without row ids, by its key; ``None`` if it is missing.

        Raises:
            sqlite3.DatabaseError: The row cannot be read.
        """
        query = f"SELECT {_quoted(columns)} FROM {table} WHERE key = ?"
        try:
            found: Row | None = self._database.execute(query, (key,)).fetchone()
        except sqlite3.DatabaseError as error:
            if not _is_missing(error) or self.columns(table) is None:
                raise
            return None
        return found

    def rows(self, table: str, columns: Sequence[str], unreadable: list[int]) -> Iterator[Row]:
        """Read the rows of a table by ranges of their ids, halving those that fail.

        Args:
            table: The table.
            columns: Its columns to read.
            unreadable: Ids that cannot be read are counted in its only element; some of them may have been deleted.
        """
        query = f"SELECT rowid, {_quoted(columns)} FROM {table} NOT INDEXED WHERE rowid BETWEEN ? AND ? ORDER BY rowid"
        ranges, failures = deque([(1, self._last_id(table))]), 0
        while ranges:
            first, last = ranges.popleft()
            try:
                for row in self._database.execute(query, (first, last)):
                    first = row[0] + 1
                    yield row[1:]
            except sqlite3.DatabaseError as error:
                if _is_missing(error):
                    return
                failures += 1
                if first >= last or failures > _MAX_FAILURES:
                    unreadable[0] += last + 1 - first
                else:
                    middle = (first + last) // 2
                    ranges += [(first, middle), (middle + 1, last)]

    def _last_id(self, table: str) -> int:
        queries = (f"SELECT max(rowid) FROM {table}", f"SELECT seq FROM sqlite_sequence WHERE name = '{table}'")
        for query in queries:
            with suppress(sqlite3.DatabaseError):
                found = self._database.execute(query).fetchone()
                if found and isinstance(found[0], int):
                    return found[0]
        return self.most_rows


@contextmanager
def damaged_file(directory: Path, folder: Path) -> Iterator[DamagedFile]:
    """Copy a run's database, give it a header if it has lost that, and open the copy.

    Args:
        directory: The run, of which nothing changes.
        folder: An empty directory for the copy.

    Raises:
        RunError: The database cannot be copied.
    """
    with file_errors(f"run {directory.name} cannot be copied"):
        _copy(directory, folder, with_log=True)
        if not _can_be_opened(folder / DATABASE):  # its log may be another file's
            _copy(directory, folder, with_log=False)
    with _opened(folder / DATABASE) as database:
        yield DamagedFile(database, (folder / DATABASE).stat().st_size)


def copy_readable(source: BinaryIO, path: Path) -> bool:
    """Copy a file, with zeros in place of blocks that cannot be read.

    Returns:
        Whether all of it could be read.

    Raises:
        OSError: The copy cannot be written.
    """
    is_whole, size = True, os.fstat(source.fileno()).st_size
    with path.open("wb") as copy:
        for start in range(0, size, _BLOCK):
            block, length = b"", min(_BLOCK, size - start)
            with suppress(OSError):
                block = os.pread(source.fileno(), length, start)
            is_whole = is_whole and len(block) == length
            copy.write(block.ljust(length, b"\0"))
    return is_whole


def _copy(directory: Path, folder: Path, *, with_log: bool) -> None:
    """Copy a database, and its log if that is wanted and there is one."""
    for path in folder.glob(f"{DATABASE}*"):
        path.unlink()
    for name in (DATABASE, _LOG) if with_log and (directory / _LOG).exists() else (DATABASE,):
        with (directory / name).open("rb") as source:
            copy_readable(source, folder / name)
    _mend_header(folder / DATABASE, folder / "new.db")


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.text_factory = lambda text: text.decode(errors="replace")  # as it is to be written again
        with suppress(sqlite3.DatabaseError):
            database.execute("PRAGMA writable_schema = ON")  # one damaged table does not hide the others
        yield database


def _can_be_opened(path: Path) -> bool:
    with suppress(sqlite3.DatabaseError), _opened(path) as database:
        database.execute("SELECT name FROM sqlite_master").fetchall()
        return True
    return False


def _mend_header(path: Path, new_path: Path) -> None:
    """Replace a damaged header by a new run's, which has the same settings."""
    new_path.unlink(missing_ok=True)
    create_file(new_path)
    new = bytearray(new_path.read_bytes()[:_HEADER])
    size = path.stat().st_size
    page = int.from_bytes(new[_PAGE_SIZE])
    new[_PAGES] = (-(-size // page)).to_bytes(4)
    new[_FREE_PAGES] = bytes(8)
    with path.open("r+b") as file:
        if file.read(16) != new[:16]:
            file.seek(0)
            file.write(new)


def _quoted(columns: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in columns)


def _is_missing(error: sqlite3.DatabaseError) -> bool:
    """Whether SQLite says that a table or a column does not exist."""
    return getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_ERROR and str(error).startswith("no such ")
