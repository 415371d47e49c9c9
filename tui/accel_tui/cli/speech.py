"""How the program speaks to the user beside its output."""

import click


def say(message: str) -> None:
    """Write a message to standard error, under the program's name."""
    click.echo(f"accel-tui: {message}", err=True)
