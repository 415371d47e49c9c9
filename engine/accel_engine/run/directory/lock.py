"""The writer lock of a run: an operating-system lock on a file in the run's directory.

The process that holds the lock is the run's only writer, and the system releases it when that process exits. It is an
open file description lock (``F_OFD_SETLK`` of fcntl(2)): unlike a POSIX lock, it is not released when the process
closes another descriptor of the file, and unlike ``flock``, it can be tested without being taken. As a forked
child shares its parent's descriptors, :func:`os.register_at_fork` closes the child's.

The lock covers the first byte. With locks of bytes after it, the writer tells readers what it waits for: they
work on a disk that is full or read-only, where nothing can be written.

Systems other than Linux use ``flock``, and have no further bytes. Testing it takes a shared lock for an instant, so a
writer retries for a moment.
"""

import errno
import fcntl
import os
import struct
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from accel_engine.errors import RunError, file_errors
from accel_engine.run.directory.run_paths import LOCK

# macOS has constants of these names, too, but another struct flock.
_SET: int | None = getattr(fcntl, "F_OFD_SETLK", None) if sys.platform == "linux" else None
_GET: int | None = getattr(fcntl, "F_OFD_GETLK", None) if sys.platform == "linux" else None

FLOCK = struct.Struct("hhqqi0q")
"""Linux' ``struct flock``: type, whence, start, length, process id."""

WHOLE_FILE = FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
"""A lock for writing the whole file."""

FLAGS = 8
"""Number of flags of :meth:`WriterLock.set_flag`."""

_FIRST_FLAG = 2
"""Byte of the first flag, apart from the first byte: the system makes one lock of two bytes side by side."""

_WRITER = FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)

_LOCKED_ERRORS = (errno.EAGAIN, errno.EACCES)

_RETRY_SECONDS = 1.0  # for flock only, see above


class WriterLock:
    """The lock of one run, held until :meth:`release` or the exit of this process.

    Args:
        directory: The run's directory.
        name: The file, for the lock of a process other than the writer.

    Attributes:
        directory: Where the file should be.

    Raises:
        BlockingIOError: Another process, or another writer in this one, holds it.
        RunError: The file system has no locks, or the file cannot be opened.
    """

    def __init__(self, directory: Path, name: str = LOCK) -> None:
        self.directory = directory
        self._name = name
        with _forking:  # no child is forked between opening the file and noting that
            with file_errors(f"cannot open the lock of run {directory.name}"):
                self._descriptor = os.open(directory / name, os.O_RDWR | os.O_CREAT, 0o600)
            file = os.fstat(self._descriptor)
            self._file = file.st_dev, file.st_ino
            _open_locks.add(self)
        try:
            _lock(self._descriptor)
        except BlockingIOError:
            self.release()
            raise
        except OSError as error:
            self.release()
            raise RunError(
                f"cannot lock run {directory.name} against other writers: {error.strerror}; "
                "set ACCEL_TUI_HOME to a directory on a file system with locks"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def set_flag(self, number: int | None) -> None:
        """Set a flag, a number below :data:`FLAGS`, in place of any other; ``None`` for none."""
        if _SET is None:
            return
        with suppress(OSError):  # the file system of an old server may lock whole files only
            fcntl.fcntl(self._descriptor, _SET, FLOCK.pack(fcntl.F_UNLCK, os.SEEK_SET, _FIRST_FLAG, FLAGS, 0))
            if number is not None:
                flag = FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, _FIRST_FLAG + number, 1, 0)
                fcntl.fcntl(self._descriptor, _SET, flag)

    @property
    def is_current(self) -> bool:
        """Whether its file is still the one in the run's directory."""
        try:
            file = os.stat(self.directory / self._name)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:  # a network that does not answer, for example
            return True
        return (file.st_dev, file.st_ino) == self._file

    def release(self) -> None:
        """Release the lock, so that another process can write the run."""
        with _forking:
            self._close()
            _open_locks.discard(self)

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        try:
            file = os.fstat(descriptor)
        except OSError:  # never opened, or a user's script has closed all descriptors
            return
        if (file.st_dev, file.st_ino) == self._file:  # else the descriptor was reused for another file
            os.close(descriptor)


def is_locked(directory: Path, name: str = LOCK) -> bool:
    """Whether a process holds a run's lock, on this machine or any that shares the file system's locks."""
    try:
        descriptor = os.open(directory / name, os.O_RDONLY)
    except OSError:
        return False  # the run was never written, or is deleted
    try:
        if _GET is not None:
            lock = fcntl.fcntl(descriptor, _GET, _WRITER)
            return bool(FLOCK.unpack(lock)[0] != fcntl.F_UNLCK)
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in _LOCKED_ERRORS
    finally:
        os.close(descriptor)
    return False


def read_flag(directory: Path) -> int | None:
    """The flag that a run's writer has set; ``None`` if there is none, or the system has no flags."""
    if _GET is None:
        return None
    try:
        descriptor = os.open(directory / LOCK, os.O_RDONLY)
    except OSError:
        return None
    try:
        asked = FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, _FIRST_FLAG, FLAGS, 0)
        kind, _, start, *_ = FLOCK.unpack(fcntl.fcntl(descriptor, _GET, asked))
    except OSError:
        return None
    finally:
        os.close(descriptor)
    if kind == fcntl.F_UNLCK:
        return None
    return int(start) - _FIRST_FLAG


def _lock(descriptor: int) -> None:
    """Lock the first byte, or raise :exc:`BlockingIOError`."""
    if _SET is not None:
        try:
            fcntl.fcntl(descriptor, _SET, _WRITER)
        except PermissionError as error:  # POSIX leaves the choice between EAGAIN and EACCES
            raise BlockingIOError(*error.args) from error
    else:
        _lock_by_flock(descriptor)


def _lock_by_flock(descriptor: int) -> None:
    deadline = time.monotonic() + _RETRY_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


_open_locks: set[WriterLock] = set()

_forking = threading.RLock()


def _close_in_child() -> None:
    for lock in _open_locks:
        lock._close()  # noqa: SLF001 (this is its own module)
    _open_locks.clear()
    _forking.release()


os.register_at_fork(before=_forking.acquire, after_in_parent=_forking.release, after_in_child=_close_in_child)
