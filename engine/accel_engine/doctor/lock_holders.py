"""Which process holds a lock; those that this one started to look are left out."""

import contextlib
import fcntl
import os
import struct
import sys
from pathlib import Path

import psutil

_FLOCK = "hhqqi0q"
"""Linux' ``struct flock``: type, whence, start, length, process id."""


def lock_holder(file: Path) -> int | None:
    """The process that holds a POSIX lock on a file.

    Returns:
        Its id; 0 when it is not of this container; ``None`` when nobody holds one, or when the
        system has no way to tell.

    Raises:
        OSError: The file cannot be opened, as a holder of the lock must be able to.
    """
    with file.open("r+b") as opened:
        if sys.platform != "linux":
            return None
        answer = fcntl.fcntl(opened, fcntl.F_GETLK, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        kind, _, _, _, holder = struct.unpack(_FLOCK, answer)
        return None if kind == fcntl.F_UNLCK or is_own(holder) else max(0, int(holder))


def describe(process: int) -> str:
    """A process in words: its id and what it runs."""
    with contextlib.suppress(psutil.Error):
        words = psutil.Process(process).cmdline()
        if "accel_engine.process" in words:
            return f"process {process} (a run of accel-tui)"
        return f"process {process} ({' '.join(words)[:60] or psutil.Process(process).name()})"
    return f"process {process}"


def is_own(process: int) -> bool:
    """Whether this program started a process, as it does to look what TensorFlow sees."""
    with contextlib.suppress(psutil.Error, ValueError):
        return psutil.Process(process).ppid() == os.getpid()
    return False
