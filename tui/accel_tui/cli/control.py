"""Steering a live run from another terminal."""

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from accel_engine.errors import RunError, UsageError
from accel_engine.plan import SPECS
from accel_engine.run import RunReader, Status, find, request
from accel_engine.run.commands import read_answer
from accel_tui.cli.output import write

PATIENCE = 10.0
"""Seconds to wait for an engine's answer."""

INTERVAL = 0.05

_run = click.argument("run")
_wait = click.option("--wait/--no-wait", default=True, help="Wait for the engine's answer.  [default: --wait]")


def _command(name: str, help: str, example: str) -> Callable[[Callable[..., Any]], click.Command]:  # noqa: A002
    return click.command(name, help=help, epilog=f"\b\nExample:\n  {example}")


@_command("stop", "End a run after the steps under way, with a checkpoint of its work.", "accel-tui stop last")
@_run
@click.option("--now", is_flag=True, help="Write no checkpoint; the last one stays.")
@_wait
def stop(run: str, now: bool, wait: bool) -> int:
    """End a run."""
    return _ask(find(run), "stop_now" if now else "stop", wait=wait)


@_command("pause", "Let a run wait between two steps, until it is resumed.", "accel-tui pause last")
@_run
@_wait
def pause(run: str, wait: bool) -> int:
    """Let a run wait."""
    return _ask(find(run), "pause", wait=wait)


@_command(
    "resume",
    "Let a run go on that was paused. One that has ended goes on with accel-tui train --resume RUN.",
    "accel-tui resume last",
)
@_run
@_wait
def resume(run: str, wait: bool) -> int:
    """Let a paused run go on."""
    directory = find(run)
    status = _status(directory)
    if not status.live:
        raise RunError(
            f"run {directory.name} is {status}, not paused: go on from its last checkpoint with "
            f"accel-tui train --resume {directory.name}"
        )
    return _ask(directory, "resume", wait=wait)


@_command("checkpoint", "Write a checkpoint of a run now; it goes on.", "accel-tui checkpoint last")
@_run
@_wait
def checkpoint(run: str, wait: bool) -> int:
    """Write a checkpoint now."""
    return _ask(find(run), "checkpoint", wait=wait)


@_command("set", "Change how a run trains, from the next step on.", "accel-tui set last --learning-rate 1e-4")
@_run
@click.option("--learning-rate", type=float, metavar="X", help="The learning rate from the next step on.")
@_wait
def set_(run: str, learning_rate: float | None, wait: bool) -> int:
    """Change the learning rate."""
    if learning_rate is None:
        raise UsageError("nothing to set: give --learning-rate")
    SPECS["learning_rate"].check("learning_rate", learning_rate)
    return _ask(find(run), "learning_rate", learning_rate, wait=wait)


def _ask(directory: Path, name: str, argument: float | None = None, *, wait: bool) -> int:
    """Ask a run's engine for something and print its answer; the status for the shell."""
    number = request(directory, name, argument)
    if not wait:
        write(f"asked run {directory.name} to {name.replace('_', ' ')}")
        return 0
    deadline = time.monotonic() + PATIENCE
    while (reply := read_answer(directory, number)) is None:
        status = _status(directory)
        if not status.live and read_answer(directory, number) is None:
            raise RunError(f"run {directory.name} ended before it could answer: it is {status}")
        if time.monotonic() > deadline:
            raise RunError(
                f"run {directory.name} has not answered in {PATIENCE:.0f} seconds; it will when its engine "
                "is free, which may be busy building or tracing"
            )
        time.sleep(INTERVAL)
    obeyed, words = reply
    if not obeyed:
        raise RunError(f"run {directory.name} did not {name.replace('_', ' ')}: {words}")
    write(f"{directory.name}: {words}")
    return 0


def _status(directory: Path) -> Status:
    with closing(RunReader(directory)) as reader:
        return reader.info().status
