"""Finds the files of a folder that cannot be opened or seem damaged, without decoding them; without TensorFlow."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from accel_engine.data.data_options import DataOptions, is_skipped, or_skip
from accel_engine.errors import DataError
from accel_engine.files import regular

Check: TypeAlias = Callable[[Path], object]
"""Raises a ``DataError`` or an ``OSError`` if a file cannot be opened or its header cannot be read; returns whether it
seems whole."""

CHECKED = 2_000
"""Number of files that a survey checks."""

_NAMED = 3
"""Number of files that are named."""

_THREADS = 16
"""Files opened in parallel, as disks of a network take long for each."""

_GROUP = 64
"""Files that a thread checks in a row: handing a file to a thread takes longer than checking it on a local disk."""


class FileChecker:
    """Checks files in threads.

    Args:
        check: Checks one file; by default only that it is a file.
    """

    def __init__(self, check: Check = regular) -> None:
        self._check = check
        self._pool = ThreadPoolExecutor(_THREADS, "file-check")

    def __call__(self, files: Sequence[str]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Which files can be opened, and which of these seem whole."""
        groups = [files[first : first + _GROUP] for first in range(0, len(files), _GROUP)]
        found = [pair for pairs in self._pool.map(self._all, groups) for pair in pairs]
        opened, whole = np.array(found, np.bool_).reshape(-1, 2).T
        return opened, whole

    def _all(self, files: Sequence[str]) -> list[tuple[bool, bool]]:
        return [self._each(file) for file in files]

    def _each(self, file: str) -> tuple[bool, bool]:
        try:
            return True, bool(self._check(Path(file)))
        except (DataError, OSError):
            return False, False


def listed_files(files: Sequence[str]) -> str:
    """The names of the first of some files, each with its folder."""
    names = ["/".join(Path(file).parts[-2:]) for file in files[:_NAMED]]
    return ", ".join([*names, "…"] if len(files) > _NAMED else names)


def unreadable_note(files: Sequence[str], check: Check, options: DataOptions) -> tuple[str, ...]:
    """A note about the files that a run may leave out, as far as checking :data:`CHECKED` of them tells.

    Raises:
        DataError: A run would end at one of these files.
    """
    if options.invalid_examples == "fail":
        return ()
    rows = np.unique(np.linspace(0, len(files) - 1, min(CHECKED, len(files))).astype(int))
    some = [files[row] for row in rows]
    _, whole = FileChecker(check)(some)
    damaged = [file for file, fine in zip(some, whole, strict=True) if not fine]
    if not damaged:
        return ()
    for file in damaged:
        try:
            check(Path(file))
        except OSError:
            continue
        except DataError as error:
            if not is_skipped(error, options):
                raise or_skip(error) from error
    checked = f"{len(some):,} of {len(files):,}" if len(some) < len(files) else f"{len(files):,}"
    names = listed_files(damaged)
    return (f"{len(damaged):,} of {checked} files seem damaged; those that cannot be read will be left out: {names}",)
