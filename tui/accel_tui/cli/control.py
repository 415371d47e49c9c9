"""``accel-tui stop``, ``pause``, ``resume``, ``checkpoint`` and ``set``: control a running run, or stop a search."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from accel_engine.errors import RunError, UsageError
from accel_engine.events import ModelBuilt
from accel_engine.plan import SPECS
from accel_engine.plan.changed_plan import BY_COMMAND, INTERVALS, command_argument, command_problem
from accel_engine.plan.interval import parse_interval
from accel_engine.run import RunInfo, Status, find_run, list_runs, read_run, send_command
from accel_engine.run.directory.run_paths import host_of_run, latest_checkpoint, run_name
from accel_engine.run.engine.commands import read_answer, withdraw
from accel_engine.run.history.history import read_history
from accel_engine.run.runs.listing import runs_named
from accel_engine.search.study_paths import find_study
from accel_tui.cli.output import write
from accel_tui.cli.searches import named_search, search_to_stop, stop_search
from accel_tui.formatting.advice import continue_command

PATIENCE = 10.0
"""Seconds to wait for an engine's answer."""

INTERVAL = 0.05

_ACTIONS = {
    "stop_now": "stop",
    "checkpoint": "write a checkpoint",
    "learning_rate": "change the learning rate",
    "validation_every": "change how often it validates",
    "checkpoint_every": "change how often it saves checkpoints",
}
"""What a command does, where its name does not say it."""

_WITHDRAWN = ("pause", "resume", *BY_COMMAND)
"""Commands that an engine does not obey once nobody waits for the answer: by then they would surprise."""

_run = click.argument("run")
_wait = click.option("--wait/--no-wait", default=True, help="Wait for the answer of the engine.  [default: --wait]")


def _command(name: str, help: str, example: str) -> Callable[[Callable[..., Any]], click.Command]:  # noqa: A002
    return click.command(name, help=help, epilog=f"\b\nExample:\n  {example}")


@_command(
    "stop",
    "Stop a run after the current steps and write a checkpoint; or stop a search, by its name, and its trials with "
    "checkpoints.\n\n"
    "A script that accel-tui run started keeps running: only its current fit ends. If no fit is running, the script "
    "is interrupted, as by Ctrl-C.",
    "accel-tui stop last",
)
@click.argument("run_or_search", metavar="RUN|SEARCH")
@click.option("--search", "is_search", is_flag=True, help="SEARCH is a search, if a run has the same name or id.")
@click.option(
    "--now",
    is_flag=True,
    help="Stop without writing a checkpoint; the last one is kept. A script is interrupted; the second time it is "
    "terminated, the third time killed.",
)
@_wait
def stop(run_or_search: str, is_search: bool, now: bool, wait: bool) -> int:
    """Ask the engine of a run, or the process of a search, to stop."""
    search = find_study(run_or_search) if is_search else search_to_stop(run_or_search)
    if search is None:
        return _send(find_run(run_or_search), "stop_now" if now else "stop", wait=wait)
    if now:
        raise UsageError(f"{search.name} is a search, whose trials always save checkpoints: leave out --now")
    return stop_search(search, PATIENCE, wait=wait)


@_command(
    "pause",
    "Pause training between two steps, until it is resumed. A script can be paused while a fit is running.",
    "accel-tui pause last",
)
@_run
@_wait
def pause(run: str, wait: bool) -> int:
    """Ask the engine to pause."""
    return _send(_find(run), "pause", wait=wait)


@_command(
    "resume",
    "Resume a paused run. To continue an ended run from its last checkpoint, use accel-tui continue RUN.",
    "accel-tui resume last",
)
@_run
@_wait
def resume(run: str, wait: bool) -> int:
    """Ask the engine to resume; of an ended run, name the command that continues it."""
    directory = _find(run)
    info = read_run(directory)
    if not info.status.live:
        advice = (
            f"use {continue_command(info)} to continue from its last checkpoint"
            if latest_checkpoint(directory)
            else "it has no checkpoint to continue from"
        )
        raise RunError(f"run {directory.name} is {info.status}, not paused: {advice}")
    return _send(directory, "resume", wait=wait)


@_command("checkpoint", "Write a checkpoint of a run now; training continues.", "accel-tui checkpoint last")
@_run
@_wait
def checkpoint(run: str, wait: bool) -> int:
    """Ask the engine for a checkpoint."""
    return _send(_find(run), "checkpoint", wait=wait)


@_command(
    "set",
    "Change the learning rate of a run, or how often it validates and saves checkpoints, from the next step on.",
    "accel-tui set last --learning-rate 1e-4",
)
@_run
@click.option("--learning-rate", type=float, metavar="X", help="The new learning rate.")
@click.option("--validation-every", metavar="TEXT", help="Steps or epochs between validations, e.g. 500 steps.")
@click.option("--checkpoint-every", metavar="TEXT", help="Steps or epochs between checkpoints, e.g. 2 epochs.")
@_wait
@click.argument("extra", nargs=-1, metavar="")
def set_(run: str, wait: bool, extra: tuple[str, ...], **settings: Any) -> int:
    """Ask the engine to change settings."""
    if extra:
        name = extra[0] if extra[0].replace("-", "_") in settings and len(extra) > 1 else "learning-rate"
        option = f"--{name.replace('_', '-')} {extra[-1]}"
        raise UsageError(f"unexpected {' '.join(extra)}: use accel-tui set {run} {option}")
    changes = {name: value for name, value in settings.items() if value is not None}
    if not changes:
        raise UsageError("nothing to set: give --learning-rate, --validation-every or --checkpoint-every")
    for name, value in changes.items():
        SPECS[name].check(name, value)
    directory = _find(run)
    arguments = _arguments(directory, changes)
    return max(_send(directory, name, argument, wait=wait) for name, argument in arguments.items())


def _find(reference: str) -> Path:
    """The directory of a run, for a command that no search takes.

    Raises:
        UsageError: There is no such run, or only a search has this name.
    """
    search = named_search(reference)
    if search and not runs_named(list_runs(), reference):
        name = search.name
        raise UsageError(
            f"{name} is a search: stop it, with checkpoints of its trials, with accel-tui stop {name}, and continue it "
            f"with accel-tui search --resume {name}"
        )
    return find_run(reference)


def _arguments(directory: Path, changes: Mapping[str, Any]) -> dict[str, float]:
    """The arguments of the commands that change the fields.

    Raises:
        UsageError: A value is invalid, or no command sets the field to it.
    """
    plan, built = read_run(directory).plan, read_history(directory, ModelBuilt).built
    steps = built.steps_per_epoch if built else 0
    if plan is not None and (problem := command_problem(plan, changes)):
        raise UsageError(problem)
    found = {name: command_argument(name, value, steps or 0) for name, value in changes.items()}
    for name, value in changes.items():
        if found[name] is None:
            if name in INTERVALS:
                parse_interval(name, value)  # raises what is wrong with it
            raise UsageError(f"a live run takes --{name.replace('_', '-')} in steps or epochs, such as 500 steps")
    return {name: argument for name, argument in found.items() if argument is not None}


def _send(directory: Path, name: str, argument: float | None = None, *, wait: bool) -> int:
    """Send a command to a run's engine and print the answer; return the status for the shell."""
    if read_run(directory).status is Status.QUEUED:
        return _cancel_queued(directory, name)
    command_id = send_command(directory, name, argument)
    if not wait:
        write(f"{directory.name}: {name.replace('_', ' ')} requested")
        return 0
    if not command_id:
        return _wait_for_stop(directory)
    deadline = time.monotonic() + PATIENCE
    while (reply := read_answer(directory, command_id)) is None:
        info = read_run(directory)
        if not info.status.live and read_answer(directory, command_id) is None:
            raise RunError(f"run {directory.name} ended before it answered: it is {info.status}")
        if time.monotonic() > deadline:
            if name not in _WITHDRAWN:
                raise RunError(f"{_silent(info)}, and answers after that")
            if _withdrawn(info, command_id, name):
                there = ", unless its engine there obeys it now" if host_of_run(directory) else ""
                raise RunError(f"{_silent(info)}; {name.replace('_', ' ')} is withdrawn{there}: send it again later")
        time.sleep(INTERVAL)
    obeyed, message = reply
    if not obeyed:
        raise RunError(f"run {directory.name} did not {_ACTIONS.get(name, name)}: {message}")
    write(f"{directory.name}: {message}")
    return 0


def _cancel_queued(directory: Path, name: str) -> int:
    """Take a run out of the queue, if it is to be stopped; no other command has an engine to obey it."""
    from accel_engine.run_queue import queue  # seldom needed

    if _ACTIONS.get(name, name) != "stop":
        raise RunError(f"run {directory.name} waits in the queue: it has no engine yet (accel-tui queue says more)")
    queue.cancel(run_name(directory))
    write(f"{directory.name}: cancelled in the queue")
    return 0


def _wait_for_stop(directory: Path) -> int:
    """Wait for an engine that was stopped by a signal, as its disk took no command; return the status for the shell."""
    deadline = time.monotonic() + PATIENCE
    while (info := read_run(directory)).status.live:
        if time.monotonic() > deadline:
            raise RunError(_silent(info, "stopped"))
        time.sleep(INTERVAL)
    if info.status is Status.LOST:
        raise RunError(f"run {directory.name} stopped, but could not write that: it is lost after its last step")
    write(f"{directory.name}: {info.status}, by a signal, as the disk took no command")
    return 0


def _silent(info: RunInfo, done: str = "answered") -> str:
    """Says that an engine has not done what it was asked to do, and why that may be."""
    why = info.waiting.waiting if info.waiting else "its engine may be building or tracing the model"
    return f"run {info.id} has not {done} in {PATIENCE:.0f} seconds: {why}"


def _withdrawn(info: RunInfo, command_id: int, name: str) -> bool:
    """Withdraw a command; whether it had no answer in the meantime."""
    try:
        return withdraw(info.directory, command_id)
    except RunError as error:
        raise RunError(f"{_silent(info)}; {name.replace('_', ' ')} may be obeyed later: {error}") from error
