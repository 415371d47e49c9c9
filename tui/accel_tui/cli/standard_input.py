"""Saves standard input as a file, as readers of tables and texts take files."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from accel_engine.errors import AccelError, UsageError

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
        UsageError: Standard input is a terminal, or empty.
    """
    if sys.stdin.isatty():
        raise UsageError("standard input is a terminal: pipe the examples into the command")
    stream = sys.stdin.buffer
    head = stream.read(_HEAD)
    if not head.strip():
        raise UsageError("standard input is empty")
    with tempfile.TemporaryDirectory(prefix="accel-tui-") as folder:
        path = Path(folder) / f"standard input{'.txt' if kind == 'text' else _table_suffix(head)}"
        with path.open("wb") as file:
            file.write(head)
            shutil.copyfileobj(stream, file)
        try:
            yield path
        except AccelError as error:
            error.args = (str(error).replace(f"{folder}/", ""),)
            raise


def _table_suffix(head: bytes) -> str:
    """The suffix of a table, by its first line."""
    line = head.strip().partition(b"\n")[0]
    if head.startswith(b"PAR1"):
        return ".parquet"
    if line.startswith(b"{"):
        return ".jsonl"
    return ".tsv" if b"\t" in line and b"," not in line and b";" not in line else ".csv"
