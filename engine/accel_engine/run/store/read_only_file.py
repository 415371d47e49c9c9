"""Opens a database to be read, also where nothing can be written: on a full disk, or another user's.

SQLite shares the memory of readers and the writer of such a file in ``run.db-shm``, which it cannot create there. If a
writer has created it, it can be used. Else nobody has the file open on this machine: without a log it is read as it is,
and with one from a copy.
"""

import os
import shutil
import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory

from accel_engine.versioned_database import connect

_CANNOT_WRITE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)

_TRIES = 5  # to copy files while they are being written

_Stamp = tuple[int, ...]


class ReadOnlyFile:
    """A database that is open to be read.

    Args:
        path: The file.

    Attributes:
        connection: Reads it.

    Raises:
        sqlite3.Error, OSError: The file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[_Stamp, _Stamp] | None = None
        self._folder: TemporaryDirectory[str] | None = None
        self.connection = _connect_shared(path) or self._connect_alone()

    def is_outdated(self) -> bool:
        """Whether the file has changed, and the connection cannot see it."""
        return self._stamp is not None and _file_stamp(self._path) != self._stamp

    def close(self) -> None:
        """Remove the copy, if there is one; the connection must be closed."""
        if self._folder:
            self._folder.cleanup()

    def _connect_alone(self) -> sqlite3.Connection:
        self._stamp = _file_stamp(self._path)
        if not self._stamp[1]:
            return connect(self._path, "mode=ro&immutable=1")
        self._folder = TemporaryDirectory(prefix="accel-tui-")
        try:
            return connect(self._copy(Path(self._folder.name)))
        except BaseException:
            self.close()
            raise

    def _copy(self, folder: Path) -> Path:
        copy = folder / self._path.name
        for _ in range(_TRIES):
            self._stamp = _file_stamp(self._path)
            for suffix in ("", "-wal"):
                shutil.copyfile(f"{self._path}{suffix}", f"{copy}{suffix}")
            if not self.is_outdated():
                return copy
        raise sqlite3.OperationalError("it is being written by another machine; try again")


def _connect_shared(path: Path) -> sqlite3.Connection | None:
    """Open a file with the memory that its readers and its writer share; ``None`` if there can be none."""
    if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK | os.X_OK):
        database = connect(path)
        try:
            database.execute("PRAGMA data_version").fetchone()  # creates the file of the shared memory
        except sqlite3.OperationalError as error:
            database.close()
            if error.sqlite_errorcode & 0xFF not in _CANNOT_WRITE:
                raise
        else:
            return database
    database = connect(path, "mode=ro")
    try:
        database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    except sqlite3.OperationalError:
        database.close()
        return None
    except sqlite3.DatabaseError:
        database.close()
        raise
    return database


def _file_stamp(path: Path) -> tuple[_Stamp, _Stamp]:
    """Values that change when a database or its log is written; the latter is empty without a log."""
    return _stamp(path), _stamp(path.with_name(f"{path.name}-wal"))


def _stamp(path: Path) -> _Stamp:
    try:
        found = path.stat()
    except FileNotFoundError:
        return ()
    return (found.st_ino, found.st_size, found.st_mtime_ns) if found.st_size else ()
