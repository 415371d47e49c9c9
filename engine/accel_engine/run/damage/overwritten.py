"""Notices that another program wrote into the file of an open database, as ``cp other.db run.db`` does, and saves it.

The file keeps its number, and SQLite notices nothing: what it has in memory and in its log hides some of the new
contents.
"""

import ctypes
import os
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote_from_bytes

from accel_engine.run.store.connection import DATABASE, initialize
from accel_engine.run.store.database import Database
from accel_engine.run.store.meta import read_meta

_UNTOLD = (
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_CORRUPT,  # as on a full disk, which takes only a part of the log that SQLite copies into the file
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
)
"""Primary result codes that do not tell whose contents a file has."""

_TRIES, _TRY_SECONDS = 10, 0.02
"""How often a file must be found overwritten: another process may just be copying its log into it."""


class OverwriteCheck:
    """Checks whether a file is still that of the same run and process.

    Args:
        process: The process that writes it, as it is in ``meta``.
    """

    def __init__(self, process: str) -> None:
        self._process = process
        self._own: dict[str, object] = {}

    def is_overwritten(self, database: Database) -> bool:
        """Whether a file was overwritten."""
        path = database.directory / DATABASE
        if not self._own:
            with suppress(sqlite3.Error):  # until then, the process may be in the log only
                database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            found = _identity(path)
            self._own = found if found and found.get("process") == self._process else {}
            return False
        for _ in range(_TRIES):
            found = _identity(path)
            if found in (None, self._own) or self._is_taken_over(found, database):
                return False
            time.sleep(_TRY_SECONDS)
        return True

    def _is_taken_over(self, found: dict[str, object] | None, database: Database) -> bool:
        """Whether another process writes the same run by way of SQLite, so that the connection sees it, too."""
        if not found or found.get("created") != self._own.get("created"):
            return False
        return bool(read_meta(database).get("process") == found.get("process"))


def _identity(path: Path) -> dict[str, object] | None:
    """What tells runs and processes apart in a file without its log; empty if it is no run's, ``None`` if untold."""
    # Not with open(): closing any descriptor of a file releases the locks that SQLite has on it.
    address = f"file:{quote_from_bytes(os.fsencode(path))}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as file:
            return dict(file.execute("SELECT key, value FROM meta WHERE key IN ('created', 'process')"))
    except sqlite3.Error as error:
        return None if getattr(error, "sqlite_errorcode", 0) & 0xFF in _UNTOLD else {}


def save_own_pages(database: Database, path: Path) -> None:
    """Save the rows that are in the log or the memory of a connection to a file that was overwritten.

    Raises:
        OSError, RunError, sqlite3.Error: They cannot be saved.
    """
    from accel_engine.run.damage.repaired_rows import copy_whole_rows  # NumPy is slow to import

    with TemporaryDirectory(prefix=".own-", dir=path.parent) as folder:
        copy = Path(folder) / DATABASE
        with closing(initialize(copy)) as pages:
            database.backup(pages)
            (size,) = pages.execute("PRAGMA page_size").fetchone()
        _blank_foreign_pages(copy, database.directory / DATABASE, size)
        with closing(initialize(path)) as rows:
            copy_whole_rows(Path(folder), rows, database.directory.name)


def _blank_foreign_pages(copy: Path, overwritten: Path, size: int) -> None:
    """Blank the pages that may have been read from the overwritten file: those that are the same there."""
    with copy.open("r+b") as ours, overwritten.open("rb") as theirs:
        theirs.seek(size)  # the connection has the first page, with the tables, in memory
        for place in range(size, copy.stat().st_size, size):
            ours.seek(place)
            if ours.read(size) == theirs.read(size).ljust(size, b"\0"):
                ours.seek(place)
                ours.write(bytes(size))


def abandon(database: Database) -> None:
    """Leave a connection open until the process ends: closing it would write its log over the new contents."""
    database.is_abandoned = True
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(database))
    for suffix in ("-wal", "-shm"):  # whoever opens the new contents must not read them with this log
        with suppress(OSError):
            (database.directory / f"{DATABASE}{suffix}").unlink()
