"""Writes to standard output and standard error, also tables, without terminal control sequences from untrusted text."""

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Sequence

import click

from accel_engine.text import printable, printable_line

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
"""The option ``--json`` of commands that print JSON lines."""

_GAP = "  "

MIN_WIDTH = 12
"""The minimum width of the last column; below it, lines are longer than the terminal."""


def write(text: object = "", *, end: str = "\n") -> None:
    """Write to standard output.

    Args:
        text: The text; control characters in it are escaped.
        end: The text to write after it.
    """
    click.echo(f"{printable(str(text))}{end}", nl=False)  # noqa: TID251 (as its message says)


def write_json(*values: object) -> None:
    """Write values to standard output, each as a line of JSON, with null for NaN and infinities."""
    from accel_engine.json_values import to_plain  # slow to import

    for value in values:
        write(json.dumps(to_plain(value)))


def print_to_stderr(*messages: str) -> None:
    """Write messages to standard error, each prefixed with the program's name."""
    for message in messages:
        click.echo(f"accel-tui: {printable(message)}", err=True)  # noqa: TID251 (as above)


def terminal_columns() -> int:
    """Columns of the terminal, or 80 without one."""
    return shutil.get_terminal_size((80, 24)).columns


def paragraph(text: str) -> str:
    """A paragraph in lines as wide as the terminal, of 120 columns at most."""
    return textwrap.fill(text, min(terminal_columns(), 120))


def readable(text: str) -> str:
    """A text in characters that the output has."""
    from accel_tui.appearance.glyphs import has_unicode, to_ascii

    return text if has_unicode(os.environ, sys.stdout.encoding or "") else to_ascii(text)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> str:
    """Format rows as columns under a header.

    Columns are as wide as their longest text; the last one wraps to the remaining width.

    Args:
        header: The columns' titles.
        rows: The texts of each row, one per column.
        width: The width in columns; by default the terminal's, or 80 without one.
    """
    header, rows = list(map(printable_line, header)), [list(map(printable_line, row)) for row in rows]
    width = width or terminal_columns()
    widths = [max(len(row[index]) for row in (header, *rows)) for index in range(len(header))]
    lead = sum(widths[:-1]) + len(_GAP) * (len(widths) - 1)
    rest = max(width - lead, MIN_WIDTH)
    lines = []
    for row in (header, *rows):
        first = _GAP.join(text.ljust(size) for text, size in zip(row[:-1], widths[:-1], strict=True))
        wrapped = textwrap.wrap(row[-1], rest, break_long_words=False) or [""]
        lines.append(f"{first}{_GAP}{wrapped[0]}".rstrip())
        lines += [" " * lead + line for line in wrapped[1:]]
    return "\n".join(lines)
