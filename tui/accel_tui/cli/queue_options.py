"""The options of commands that add a run to the queue instead of training it at once."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

_OPTIONS = (
    click.option(
        "--queue", "queued", is_flag=True, help="Print the run's id and return; it trains when its turn comes."
    ),
    click.option("--priority", type=int, metavar="N", help="With --queue: higher ones start first.  [default: 0]"),
    click.option(
        "--after", multiple=True, metavar="RUN", help="With --queue: wait until RUN has finished; repeatable."
    ),
    click.option("--devices-each", type=int, metavar="N", help="With --queue: how many accelerators the run gets."),
)


@dataclass(frozen=True, slots=True)
class QueueFlags:
    """The options that are given.

    Attributes:
        priority: The priority; ``None`` for the default.
        after: References of runs to wait for.
        devices_each: How many accelerators; ``None`` for what the plan says.
    """

    priority: int | None
    after: tuple[str, ...]
    devices_each: int | None


def queue_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --queue and what goes with it to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def take_queue_flags(flags: dict[str, Any]) -> QueueFlags | None:
    """Remove the options of the queue from a command's flags; returns them, or ``None`` without --queue.

    Raises:
        click.UsageError: There are some without --queue.
    """
    queued = flags.pop("queued")
    found = QueueFlags(flags.pop("priority"), flags.pop("after"), flags.pop("devices_each"))
    if queued:
        return found
    if found != QueueFlags(None, (), None):
        raise click.UsageError("--priority, --after and --devices-each go with --queue")
    return None


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
