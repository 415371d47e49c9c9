"""Memory that processes take, and that this one may still take within the limits of its control groups."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from accel_engine.control_groups import own_groups
from accel_engine.errors import DataError
from accel_engine.words import numbers

CACHE_SHARE = 0.25
"""Share of a device's memory, or of the host's available memory, that a cached split may take."""

_FILES = (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes"))
"""The limit and the use of a control group, of version 2 and 1."""

_RECLAIMABLE = ("active_file", "inactive_file", "slab_reclaimable")
"""What a control group uses and the kernel frees before the limit is reached: caches of files."""


def available_memory() -> int:
    """Bytes that can be allocated without swapping, and without being killed for the limit of a container."""
    return min([psutil.virtual_memory().available, *_left_in_groups()])


def resident_bytes(pid: int) -> int:
    """Resident bytes of a process and its descendants; 0 if it has exited."""
    found = 0
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        for each in (process, *process.children(recursive=True)):
            with suppress(psutil.Error):  # it exits meanwhile
                found += each.memory_info().rss
    return found


def check_fits_memory(what: str, nbytes: int) -> None:
    """Check that something that is read whole fits in memory, before it is read.

    Args:
        what: Names it, for the message.
        nbytes: Its size in memory.

    Raises:
        DataError: It takes more memory than is available.
    """
    free = available_memory()
    if nbytes > free:
        raise DataError(f"{what} takes {numbers.size(nbytes)} of memory, and {numbers.size(free)} are available")


def _left_in_groups() -> Iterator[int]:
    """Bytes up to the limits of this process's control groups, and of those above; nothing where there are none."""
    for groups in own_groups("memory"):
        for group in groups:
            yield from _left(group)


def _left(group: Path) -> Iterator[int]:
    for limit, used in _FILES:
        with suppress(OSError, ValueError):  # no such file, or "max"
            stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
            cached = sum(int(stat.get(f"total_{name}", stat.get(name, 0))) for name in _RECLAIMABLE)
            yield max(int((group / limit).read_text()) - int((group / used).read_text()) + cached, 0)
