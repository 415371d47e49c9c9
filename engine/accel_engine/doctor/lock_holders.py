"""Finds the process that holds a lock, ignoring child processes of this one."""

import contextlib
import fcntl
import os
import sys
from pathlib import Path

import psutil

from accel_engine.run.directory.lock import FLOCK, WHOLE_FILE


def lock_holder(file: Path) -> int | None:
    """Find the process that holds a POSIX lock on a file.

    Returns:
        Its process id; 0 if it is outside this container; ``None`` if the file is not locked, or the system
        cannot tell.

    Raises:
        OSError: The file cannot be opened for writing.
    """
    with file.open("r+b") as opened:
        if sys.platform != "linux":
            return None
        kind, _, _, _, holder = FLOCK.unpack(fcntl.fcntl(opened, fcntl.F_GETLK, WHOLE_FILE))
        return None if kind == fcntl.F_UNLCK or is_child_process(holder) else max(0, int(holder))


def describe_process(process: int) -> str:
    """Format a process: its id and command."""
    with contextlib.suppress(psutil.Error):
        command = psutil.Process(process).cmdline()
        if "accel_engine.process" in command:
            return f"process {process} (accel-tui engine)"
        return f"process {process} ({' '.join(command)[:60] or psutil.Process(process).name()})"
    return f"process {process}"


def is_child_process(process: int) -> bool:
    """Whether a process is a child of this one, such as the one that probes TensorFlow."""
    with contextlib.suppress(psutil.Error, ValueError):
        return psutil.Process(process).ppid() == os.getpid()
    return False
