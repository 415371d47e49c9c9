"""Columns of text for the terminal and for files."""

import shutil
import textwrap
from collections.abc import Sequence

from accel_engine.text import printable_line

GAP = "  "

NARROWEST = 12
"""A last column is not wrapped to less than this; the lines get longer instead."""


def table(header: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> str:
    """Lay rows out in columns under a header.

    The columns are as wide as what is in them, but for the last, which wraps to the rest of the width.

    Args:
        header: The columns' titles.
        rows: As many texts each.
        width: In columns of the terminal; its own, or 80 where there is none, when left out.
    """
    header, rows = list(map(printable_line, header)), [list(map(printable_line, row)) for row in rows]
    width = width or shutil.get_terminal_size((80, 24)).columns
    widths = [max(len(row[index]) for row in (header, *rows)) for index in range(len(header))]
    lead = sum(widths[:-1]) + len(GAP) * (len(widths) - 1)
    rest = max(width - lead, NARROWEST)
    lines = []
    for row in (header, *rows):
        first = GAP.join(text.ljust(size) for text, size in zip(row[:-1], widths[:-1], strict=True))
        wrapped = textwrap.wrap(row[-1], rest, break_long_words=False) or [""]
        lines.append(f"{first}{GAP}{wrapped[0]}".rstrip())
        lines += [" " * lead + line for line in wrapped[1:]]
    return "\n".join(lines)


def shortened(text: str, width: int) -> str:
    """The text in a printable line, or its beginning with an ellipsis when it is wider than ``width``."""
    text = printable_line(text)
    return text if len(text) <= width else text[: width - 1] + "\u2026"
