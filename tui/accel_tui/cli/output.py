"""Writes to standard output and standard error, without terminal control sequences from untrusted text."""

import json
from collections.abc import Callable
from typing import Any

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


def write_json(*values: object, default: Callable[[Any], Any] | None = None) -> None:
    """Write values to standard output, each as a line of JSON."""
    for value in values:
        write(json.dumps(value, default=default))


def print_to_stderr(message: str) -> None:
    """Write a message to standard error, prefixed with the program's name."""
    click.echo(f"accel-tui: {printable(message)}", err=True)  # noqa: TID251 (as above)
