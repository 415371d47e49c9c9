"""The options of commands that add a run to the queue instead of training it at once."""

import os
from typing import Any

import click

from accel_engine.run_queue.queue_entries import QueueRequest
from accel_tui.cli.options import Command, takes


def queue_options(command: Command) -> Command:
    """Add --queue and what goes with it to a command."""
    about = "Print the run's id and return; it trains when its turn comes."
    return click.option("--queue", "queued", is_flag=True, help=about)(
        takes(QueueRequest, "request", if_given=True)(command)
    )


def take_queue_flags(flags: dict[str, Any]) -> QueueRequest | None:
    """Remove the options of the queue from a command's flags; returns them, or ``None`` without --queue.

    Its runs to wait for are references, see :func:`run_id`.

    Raises:
        click.UsageError: There are some without --queue.
    """
    queued, request = flags.pop("queued"), flags.pop("request")
    if request and not queued:
        raise click.UsageError("--priority, --after and --devices-each go with --queue")
    return QueueRequest(**request) if queued else None


def run_id(reference: str) -> str:
    """The id of a run, as the queue knows it.

    Raises:
        UsageError: There is none, or it is not in the directory of runs.
    """
    from accel_engine.errors import UsageError
    from accel_engine.run import find, runs_directory

    directory = find(reference)
    if not os.path.samefile(directory.parent, runs_directory()):
        raise UsageError(f"run {reference} is not in {runs_directory()}, so no run of the queue can wait for it")
    return directory.name
