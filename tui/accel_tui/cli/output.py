"""How the commands write. Nothing else does: whatever is in a text, the terminal is not made to obey it."""

import click

from accel_engine.text import printable


def write(text: object = "", *, control: str = "", end: str = "\n") -> None:
    """Write to standard output.

    Args:
        text: What to write, as it is; cleaned of what a terminal would obey.
        control: A control sequence of our own to send before it.
        end: What to write after it.
    """
    click.echo(f"{control}{printable(str(text))}{end}", nl=False)  # noqa: TID251 (as its message says)


def print_line(message: str) -> None:
    """Write a message to standard error, under the program's name."""
    click.echo(f"accel-tui: {printable(message)}", err=True)  # noqa: TID251 (as above)
