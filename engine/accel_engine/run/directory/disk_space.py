"""Compares what a run will take on the disk with what is free."""

import shutil
from pathlib import Path

from accel_engine.errors import RunError
from accel_engine.run.directory.disk_problem import RESERVE_BYTES
from accel_engine.user_paths import is_directory
from accel_engine.words import numbers

MIN_FREE = RESERVE_BYTES + (1 << 20)
"""Bytes without which no run starts: for its database, its log and the space that it sets aside."""


def check_free_space(directory: Path) -> None:
    """Raise an error if a disk has no room for a run.

    Args:
        directory: The directory of runs, or of a run; it may not exist yet.

    Raises:
        RunError: There is no room.
    """
    free = free_bytes(directory)
    if free is not None and free < MIN_FREE:
        raise RunError(
            f"no run can start: the disk of {directory} has {numbers.size(free)} free. Make room, or set "
            "ACCEL_TUI_HOME to a directory on another disk"
        )


def shortage(directory: Path, needed: int) -> str:
    """A warning if a run needs more than the disk has free; empty otherwise.

    Args:
        directory: The directory of runs, or of a run; it may not exist yet.
        needed: Bytes, of :func:`accel_engine.plan.disk_estimate.estimate_disk`.
    """
    free = free_bytes(directory)
    if free is None or needed <= free:
        return ""
    takes = f"the run takes about {numbers.size(needed)} on the disk"
    return f"{takes}, which has {numbers.size(free)} free: training waits when it is full"


def free_bytes(directory: Path) -> int | None:
    """The bytes that this user can write to a disk; ``None`` if the system does not tell."""
    existing = next((each for each in (directory, *directory.parents) if is_directory(each)), directory)
    try:
        return shutil.disk_usage(existing).free
    except OSError:
        return None
