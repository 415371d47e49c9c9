"""Writes to standard output and standard error, without terminal control sequences from untrusted text."""

import json

import click

from accel_engine.text import printable

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
"""The option ``--json`` of commands that print JSON lines."""


def write(text: object = "", *, control: str = "", end: str = "\n") -> None:
    """Write to standard output.

    Args:
        text: The text; control characters in it are escaped.
        control: A trusted control sequence to write before it.
        end: The text to write after it.
    """
    click.echo(f"{control}{printable(str(text))}{end}", nl=False)  # noqa: TID251 (as its message says)


def write_json(*values: object) -> None:
    """Write values to standard output, each as a line of JSON, with null for NaN and infinities."""
    from accel_engine.json_values import to_plain  # slow to import

    for value in values:
        write(json.dumps(to_plain(value)))


def print_to_stderr(message: str) -> None:
    """Write a message to standard error, prefixed with the program's name."""
    click.echo(f"accel-tui: {printable(message)}", err=True)  # noqa: TID251 (as above)
