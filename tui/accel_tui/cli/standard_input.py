"""Saves standard input as a file, as readers of tables and texts take files."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from accel_engine.errors import AccelError, RunError, UsageError

STANDARD_INPUT = "-"
"""The name of standard input among files."""

_HEAD = 1 << 16
"""Bytes by which the format of a table is told."""


@contextmanager
def saved_input(kind: str) -> Iterator[Path]:
    """Yield a temporary file with what standard input has.

    Args:
        kind: What an example of the run's data is: of a text, lines; otherwise a table, as CSV, TSV or JSON lines.

    Raises:
        UsageError: Standard input is closed, a terminal, or empty.
        RunError: It cannot be read, or the temporary file cannot be written.
    """
    if sys.stdin is None:
        raise UsageError("standard input is closed: pipe the examples into the command")
    if sys.stdin.isatty():
        raise UsageError("standard input is a terminal: pipe the examples into the command")
    with tempfile.TemporaryDirectory(prefix="accel-tui-") as folder:
        try:
            path = _save(sys.stdin.buffer, Path(folder), kind)
        except OSError as error:
            raise RunError(f"cannot save standard input in a temporary file: {error.strerror or error}") from error
        try:
            yield path
        except AccelError as error:
            error.args = (str(error).replace(f"{folder}/", ""),)
            raise


def _save(stream: BinaryIO, folder: Path, kind: str) -> Path:
    """Copy a stream into a file.

    Raises:
        UsageError: It is empty.
        OSError: It cannot be read, or the file cannot be written.
    """
    head = stream.read(_HEAD)
    if not head.strip():
        raise UsageError("standard input is empty")
    path = folder / f"standard input{'.txt' if kind == 'text' else _table_suffix(head)}"
    with path.open("wb") as file:
        file.write(head)
        shutil.copyfileobj(stream, file)
    return path


def _table_suffix(head: bytes) -> str:
    """The suffix of a table, by its first line."""
    line = head.strip().partition(b"\n")[0]
    if head.startswith(b"PAR1"):
        return ".parquet"
    if line.startswith(b"{"):
        return ".jsonl"
    return ".tsv" if b"\t" in line and b"," not in line and b";" not in line else ".csv"
