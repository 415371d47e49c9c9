"""Notices that a script has closed files which it has not opened, as daemons close all descriptors.

The next file that the script opens gets the number of a closed descriptor. Whoever still writes to that number then
writes into the script's file.
"""

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

_DESCRIPTORS = Path("/proc/self/fd") if Path("/proc/self/fd").is_dir() else Path("/dev/fd")

_File = tuple[int, int]  # device and inode


class OpenFiles:
    """The descriptors by which this process has files open.

    Args:
        paths: The files; those that do not exist are ignored.
    """

    def __init__(self, paths: Collection[Path]) -> None:
        files = set[_File]()
        for path in paths:
            with suppress(OSError):
                status = path.stat()
                files.add((status.st_dev, status.st_ino))
        numbers = [int(name) for name in os.listdir(_DESCRIPTORS) if name.isdecimal()]
        self._files = {number: file for number in numbers if (file := _file_of(number)) in files}

    @property
    def are_open(self) -> bool:
        """Whether each file has one of its descriptors still: a script that reads its own run closes the others."""
        still_open = {file for number, file in self._files.items() if _file_of(number) == file}
        return still_open == set(self._files.values())


def _file_of(descriptor: int) -> _File | None:
    try:
        status = os.fstat(descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino
