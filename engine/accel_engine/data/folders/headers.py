"""Reads the headers of some files of a folder; without TensorFlow."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from accel_engine.data.data_options import DataOptions, is_skipped, or_skip
from accel_engine.errors import DataError

T = TypeVar("T")

HEADERS_READ = 64
"""Number of files whose headers are read."""


def read_headers(files: Sequence[str], read: Callable[[Path], T], options: DataOptions) -> list[tuple[str, T]]:
    """Read the headers of files that are spread evenly.

    Args:
        files: Their paths.
        read: Reads the header of a file.
        options: Whether files that cannot be read are skipped.

    Returns:
        The files with their headers, without those that are skipped.

    Raises:
        DataError: A header is damaged, unless such files are skipped; or all are.
    """
    headers: list[tuple[str, T]] = []
    problem = None
    for row in np.unique(np.linspace(0, len(files) - 1, HEADERS_READ).astype(int)):
        try:
            headers.append((files[row], read(Path(files[row]))))
        except DataError as error:
            if not is_skipped(error, options):
                raise or_skip(error) from error
            problem = error
    if problem and not headers:
        raise problem
    return headers
