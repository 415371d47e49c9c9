"""Opens the database of a run to be read, also where nothing can be written: on a full disk, or another user's.

SQLite shares the memory of readers and the writer of such a file in ``run.db-shm``, which it cannot create there. If a
writer has created it, it can be used. Else nobody has the file open on this machine: without a log it is read as it is,
and with one from a copy.
"""

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from accel_engine.run.store.database import Database

_CANNOT_WRITE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)

_TRIES = 5  # to copy files while they are being written

Open = Callable[[Path, str], Database]
"""Opens a file with options of SQLite's addresses, such as ``mode=ro``."""


def open_to_read(path: Path, connect: Open) -> Database:
    """Open a database to be read; where nothing can be written, it says itself when it no longer is what the file is.

    Raises:
        sqlite3.Error, OSError: It cannot be opened.
    """
    if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK | os.X_OK):
        database = connect(path, "mode=rw")
        try:
            database.data_version()  # creates the file of the shared memory
        except sqlite3.OperationalError as error:
            database.close()
            if error.sqlite_errorcode & 0xFF not in _CANNOT_WRITE:
                raise
        else:
            return database
    return _open_unwritable(path, connect)


def _open_unwritable(path: Path, connect: Open) -> Database:
    database = connect(path, "mode=ro")
    try:
        database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    except sqlite3.OperationalError:
        database.close()
    else:
        return database
    stamp = file_stamp(path)
    if not stamp[1]:
        database = connect(path, "mode=ro&immutable=1")
        database.watch(lambda: file_stamp(path) != stamp)
        return database
    return _open_copy(path, connect)


def file_stamp(path: Path) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What changes when a database or its log is written; the latter is empty without a log."""
    return _stamp(path), _stamp(path.with_name(f"{path.name}-wal"))


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return ()
    return (found.st_ino, found.st_size, found.st_mtime_ns) if found.st_size else ()


def _open_copy(path: Path, connect: Open) -> Database:
    folder = TemporaryDirectory(prefix="accel-tui-")
    try:
        copy = Path(folder.name) / path.name
        for _ in range(_TRIES):
            stamp = file_stamp(path)
            for suffix in ("", "-wal"):
                shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
            if file_stamp(path) == stamp:
                break
        else:
            raise sqlite3.OperationalError("it is being written by another machine; try again")
        database = connect(copy, "mode=rw")
    except BaseException:
        folder.cleanup()
        raise
    database.watch(lambda: file_stamp(path) != stamp, folder.cleanup)
    return database
