"""Formats tables of text for terminals and files."""

import shutil
import textwrap
from collections.abc import Sequence

from accel_engine.text import printable_line

GAP = "  "

MIN_WIDTH = 12
"""The minimum width of the last column; below it, lines are longer than the terminal."""


def table(header: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> str:
    """Format rows as columns under a header.

    Columns are as wide as their longest text; the last one wraps to the remaining width.

    Args:
        header: The columns' titles.
        rows: The texts of each row, one per column.
        width: The width in columns; by default that of the terminal, or 80 without one.
    """
    header, rows = list(map(printable_line, header)), [list(map(printable_line, row)) for row in rows]
    width = width or shutil.get_terminal_size((80, 24)).columns
    widths = [max(len(row[index]) for row in (header, *rows)) for index in range(len(header))]
    lead = sum(widths[:-1]) + len(GAP) * (len(widths) - 1)
    rest = max(width - lead, MIN_WIDTH)
    lines = []
    for row in (header, *rows):
        first = GAP.join(text.ljust(size) for text, size in zip(row[:-1], widths[:-1], strict=True))
        wrapped = textwrap.wrap(row[-1], rest, break_long_words=False) or [""]
        lines.append(f"{first}{GAP}{wrapped[0]}".rstrip())
        lines += [" " * lead + line for line in wrapped[1:]]
    return "\n".join(lines)
