"""Errors of the disk, which pass once a user has made room or repaired it: tells them from all others, and waits."""

import errno
import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from accel_engine.run.directory.lock import read_flag

RETRY_SECONDS = 1.0
"""How long to wait before the next try at least."""

RETRY_SHARE = 0.1
"""The share of the time that tries may take: half of a large checkpoint is not written every second."""

RESERVE_BYTES = 1 << 20
"""Space that a run sets aside while it trains, for its last steps and its end on a full disk."""

END_BYTES = 1 << 18
"""The part of it that is for the end of the run alone."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


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
        """The end of the message on waiting: ``for space``, or ``to write again``."""
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

_PASSING = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_NOMEM)
"""Codes for a database that another process has, and for a lack of memory."""

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


def may_pass(error: BaseException, directory: Path) -> bool:
    """Whether a write that failed may succeed later: a problem of the disk or of memory, or another process writes.

    Args:
        error: Raised while writing into ``directory``; its causes are examined, too.
        directory: A run's directory.
    """
    codes = (getattr(cause, "sqlite_errorcode", 0) & 0xFF for cause in _causes(error))
    return any(code in _PASSING for code in codes) or disk_problem(error, directory) is not None


def read_waiting(directory: Path) -> DiskProblem | None:
    """The reason why a run's writer waits; ``None`` if it does not wait, or the system cannot tell."""
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


class Reserve:
    """Space set aside on the disk, which the system frees at the latest when this process ends.

    Args:
        directory: A directory on the disk.
        size: Bytes; where there is less room, less is set aside.
    """

    def __init__(self, directory: Path, size: int) -> None:
        self._descriptor: int | None = None  # of a file without a name, so that nothing is left after a kill
        with suppress(OSError), tempfile.TemporaryFile(dir=directory, buffering=0) as file:
            self._descriptor = os.dup(file.fileno())
            file.write(os.urandom(size))  # a disk that compresses would save nothing of zeros

    def shrink(self, size: int) -> None:
        """Free all but ``size`` bytes."""
        with suppress(OSError):
            if self._descriptor is not None and os.fstat(self._descriptor).st_size > size:
                os.ftruncate(self._descriptor, size)  # not closed: a forked child may have the file open, too


class DiskWait:
    """Repeats writes to one run. Thread-safe.

    Args:
        directory: The run's directory.
        show: Called with the problem when a thread begins to wait for the disk, and with ``None`` when none waits.

    Attributes:
        directory: The run's directory.
        problem: What threads wait for; ``None`` if none waits.
    """

    def __init__(self, directory: Path, show: Callable[[DiskProblem | None], None]) -> None:
        self.directory = directory
        self._show = show
        self._lock = threading.Lock()
        self._threads = 0
        self._stop: Callable[[DiskProblem], Exception] | None = None
        self._stopping = threading.Event()
        self._reserve: Reserve | None = None
        self.problem: DiskProblem | None = None

    def set_aside(self) -> None:
        """Set space aside for the end of the run, if there is any."""
        self._reserve = Reserve(self.directory, RESERVE_BYTES)

    def stop_waiting(self, stop: Callable[[DiskProblem], Exception]) -> None:
        """Try each write only once more from now on, with most of the space that was set aside.

        Args:
            stop: Makes the exception that writes raise which fail then, too.
        """
        self._stop = stop
        self._free(END_BYTES)
        self._stopping.set()

    def free_all(self) -> None:
        """Free the rest of the space that was set aside."""
        self._free(0)

    def _free(self, size: int) -> None:
        if self._reserve:
            self._reserve.shrink(size)

    def repeat(self, write: Callable[[], Result], on_success: Callable[[DiskProblem, float], object]) -> Result:
        """Call a function that writes, again and again while it fails because of the disk; returns its result.

        Args:
            write: Writes; a call after one that failed must do all of it.
            on_success: Called after a wait with the first problem and the seconds waited.

        Raises:
            Exception: What ``write`` raises for another reason, or the exception of :meth:`stop_waiting`.
        """
        began = time.monotonic()
        try:
            return write()
        except Exception as error:
            first = disk_problem(error, self.directory)
            if first is None:
                raise
        result = self._wait(write, first, time.monotonic() - began)
        on_success(first, time.monotonic() - began)
        return result

    def _wait(self, write: Callable[[], Result], problem: DiskProblem, took: float) -> Result:
        self._count(1, problem)
        try:
            while True:
                is_last = self._stopping.wait(max(RETRY_SECONDS, took / RETRY_SHARE))
                began = time.monotonic()
                try:
                    return write()
                except Exception as error:
                    found = disk_problem(error, self.directory)
                    if found is None:
                        raise
                    if is_last and self._stop:
                        raise self._stop(found) from error
                    self._count(0, found)
                    took = time.monotonic() - began
        finally:
            self._count(-1, None)

    def _count(self, threads: int, problem: DiskProblem | None) -> None:
        """Count the threads that wait, and show what they wait for if that has changed."""
        with self._lock:
            self._threads += threads
            problem = (problem or self.problem) if self._threads else None
            if problem is not self.problem:
                self.problem = problem
                self._show(problem)


class _WaitsForDisk(Protocol):
    """A class whose methods may wait for the disk."""

    def wait_for_disk(self, write: Callable[[], Result]) -> Result:
        """Call a function that writes, as :meth:`DiskWait.repeat` does."""


Writer = TypeVar("Writer", bound=_WaitsForDisk)


def waits_for_disk(
    method: Callable[Concatenate[Writer, Arguments], Result],
) -> Callable[Concatenate[Writer, Arguments], Result]:
    """Decorate a method that writes, so that it waits for the disk."""

    @wraps(method)
    def call(self: Writer, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        return self.wait_for_disk(lambda: method(self, *args, **kwargs))

    return call
