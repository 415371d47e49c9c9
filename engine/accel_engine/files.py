"""Writes files atomically: a reader finds the old file or the new one, whole."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the same directory, whose file replaces ``path`` unless the block raises.

    Raises:
        OSError: The file cannot be replaced.
    """
    temporary = path.with_name(f".{os.getpid()}.{path.name}")  # some formats are chosen by the suffix
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
