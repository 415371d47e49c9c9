"""Tells errors of the disk, which pass once a user has made room or repaired it, from all others."""

import errno
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

from accel_engine.run.directory.lock import read_flag


class DiskProblem(StrEnum):
    """Why nothing can be written for now.

    A run's engine tells other processes by a flag of its lock, as it cannot write: the index of a problem is its
    number, so that others may only be added at the end.
    """

    FULL = "disk full"
    QUOTA = "disk quota reached"
    READ_ONLY = "read-only disk"
    IO = "disk I/O error"

    @property
    def wanted(self) -> str:
        """What a run waits for: ``for space``, or ``to write again``."""
        return "for space" if self in (DiskProblem.FULL, DiskProblem.QUOTA) else "to write again"

    @property
    def waiting(self) -> str:
        """That a run waits, such as ``disk full: waiting for space``."""
        return f"{self}: waiting {self.wanted}"


_OF_ERRNO = {
    errno.ENOSPC: DiskProblem.FULL,
    errno.EDQUOT: DiskProblem.QUOTA,
    errno.EFBIG: DiskProblem.QUOTA,
    errno.EROFS: DiskProblem.READ_ONLY,
    errno.EIO: DiskProblem.IO,
}

_OF_SQLITE = {
    sqlite3.SQLITE_FULL: DiskProblem.FULL,
    sqlite3.SQLITE_IOERR: DiskProblem.IO,
    sqlite3.SQLITE_CANTOPEN: DiskProblem.IO,
    sqlite3.SQLITE_READONLY: DiskProblem.READ_ONLY,
}
"""By primary result code; the system's own error, where it can be found, says more."""

_BLOCK = 4096


def disk_problem(error: BaseException, directory: Path) -> DiskProblem | None:
    """The problem of the disk that caused an error; ``None`` if it has another cause.

    Args:
        error: Raised while writing into ``directory``; its causes are examined, too.
        directory: A run's directory.
    """
    for cause in _causes(error):
        found = None
        if isinstance(cause, sqlite3.Error):
            found = _of_sqlite(cause, directory)
        elif isinstance(cause, OSError):
            found = _OF_ERRNO.get(cause.errno or 0)
        elif hasattr(cause, "error_code"):  # TensorFlow's OpError, which has the system's error as a text only
            found = next((problem for number, problem in _OF_ERRNO.items() if os.strerror(number) in str(cause)), None)
        if found:
            return found
    return None


def read_waiting(directory: Path) -> DiskProblem | None:
    """What a run's writer waits for; ``None`` if it does not wait, or the system cannot tell."""
    number = read_flag(directory)
    return None if number is None or number >= len(DiskProblem) else list(DiskProblem)[number]


def _causes(error: BaseException | None) -> Iterator[Any]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _of_sqlite(error: sqlite3.Error, directory: Path) -> DiskProblem | None:
    code = getattr(error, "sqlite_errorcode", 0)
    problem = _OF_SQLITE.get(code & 0xFF)
    if problem is None or code == sqlite3.SQLITE_READONLY_DBMOVED:
        return None
    # SQLite has one code for several errors, and for a directory that is gone.
    number = _try_to_write(directory)
    return _OF_ERRNO.get(number) if number else problem


def _try_to_write(directory: Path) -> int:
    """Write a block of a temporary file, at the end of the longest file of the run; returns the error's number or 0."""
    try:
        end = max((entry.stat().st_size for entry in os.scandir(directory)), default=0)
        with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
            os.pwrite(file.fileno(), bytes(_BLOCK), end)
    except OSError as error:
        return error.errno or errno.EIO
    return 0
