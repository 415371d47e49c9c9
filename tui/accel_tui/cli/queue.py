"""``accel-tui queue``: lists the runs that wait, and changes their order."""

from collections.abc import Callable
from typing import Any

import click

from accel_engine.run import RunSummary
from accel_engine.run.runs.listing import summarize
from accel_engine.run_queue import queue as run_queue
from accel_engine.run_queue.queue_entries import QueueEntry
from accel_tui.cli.output import json_option, table, write, write_json
from accel_tui.run_list.columns import run_title
from accel_tui.settings.user_settings import load_settings

EPILOG = """\b
Examples:
  accel-tui train plan.toml --queue            add a run
  accel-tui queue                              list the queue
  accel-tui queue move k3fp 1                  let a run start next
  accel-tui queue limit 2                      train at most two runs at once
"""

HEADER = ("", "RUN", "PRIORITY", "DEVICES", "STATE")

_runs = click.argument("runs", nargs=-1, required=True, metavar="RUN...")
_run = click.argument("run")


@click.group("queue", epilog=EPILOG, invoke_without_command=True)
@json_option
@click.pass_context
def queue(context: click.Context, as_json: bool) -> None:
    """List the runs of the queue, in the order in which they start, and why each waits.

    A run starts when the devices that it asks for are free, of other people's programs, too, when the runs have
    finished that it comes after, and when fewer runs train than the limit. No program needs to stay open for it.
    """
    if context.invoked_subcommand is not None:
        if as_json:
            raise click.UsageError("--json lists the queue; it goes with no subcommand")
        return
    run_queue.set_default_limit(load_settings().queue_at_once)
    run_queue.ensure_waiter()
    entries = run_queue.entries()
    if as_json:
        write_json(*map(_wire, entries))
    elif entries:
        write(table(HEADER, [_row(entry) for entry in entries]))
    else:
        write("The queue is empty. Add a run: accel-tui train --queue")


@queue.command(epilog="\b\nExample:\n  accel-tui queue cancel k3fp")
@_runs
def cancel(runs: tuple[str, ...]) -> None:
    """Take each RUN out of the queue; it keeps its plan. One that trains is asked to stop."""
    _each(runs, run_queue.cancel, "cancelled")


@queue.command(epilog="\b\nExample:\n  accel-tui queue hold k3fp")
@_runs
def hold(runs: tuple[str, ...]) -> None:
    """Let each RUN wait until you release it."""
    _each(runs, run_queue.hold, "held")


@queue.command(epilog="\b\nExample:\n  accel-tui queue release k3fp")
@_runs
def release(runs: tuple[str, ...]) -> None:
    """Let each held RUN start when its turn comes.

    A run that was to come after one that failed, was stopped or was deleted no longer waits for that one.
    """
    _each(runs, run_queue.release, "released")


@queue.command(epilog="\b\nExample:\n  accel-tui queue move k3fp 1")
@_run
@click.argument("position", type=click.IntRange(min=1))
def move(run: str, position: int) -> None:
    """Move RUN to a position from 1. It takes the priority of the runs there, if its own differs."""
    _each((run,), lambda found: run_queue.move(found, position), "moved")


@queue.command(
    epilog="\b\nExample:\n  accel-tui queue priority k3fp 10", context_settings={"ignore_unknown_options": True}
)
@_run
@click.argument("number", type=int)
def priority(run: str, number: int) -> None:
    """Change the priority of RUN: higher ones start first. It is 0 by default, and may be negative."""
    _each((run,), lambda found: run_queue.set_priority(found, number), f"priority {number}")


@queue.command(epilog="\b\nExample:\n  accel-tui queue limit 2", context_settings={"ignore_unknown_options": True})
@click.argument("number", required=False, metavar="[N|auto]")
def limit(number: str | None) -> None:
    """Show or change how many runs train at once, those included that you start yourself.

    auto is the limit of the settings (queue.at_once), or else as many as there are accelerators, and one on the CPU.
    """
    run_queue.set_default_limit(load_settings().queue_at_once)
    if number is not None:
        run_queue.set_limit(run_queue.parse_limit(number))
    found = run_queue.limit()
    if found is None:
        write("auto: as many at once as there are accelerators, or one on the CPU")
    elif run_queue.has_default_limit():
        write(f"at most {found} at once, by the setting queue.at_once")
    else:
        write(f"at most {found} at once (accel-tui queue limit auto: the default)")


def _each(references: tuple[str, ...], change: Callable[[str], object], done: str) -> None:
    """Change runs, after all were found, and say so."""
    for run in [_find(reference) for reference in references]:
        change(run)
        write(f"{run}: {done}")


def _find(reference: str) -> str:
    """The id of a run; a prefix may be ambiguous among all runs, but not in the queue."""
    found = [entry.run for entry in run_queue.entries() if entry.run.startswith(reference)]
    return found[0] if len(found) == 1 else run_queue.find_run_id(reference)


def _row(entry: QueueEntry) -> tuple[str, ...]:
    run = summarize(entry.directory)
    return (
        str(entry.position or ""),
        run_title(run),
        str(entry.request.priority or ""),
        entry.on_devices,
        _state(entry, run),
    )


def _state(entry: QueueEntry, run: RunSummary) -> str:
    """Whether a run trains, with its step, or why it waits."""
    if entry.is_started:
        return f"{run.status or 'starting'}, step {run.steps:,}" if run.steps else str(run.status or "starting")
    return entry.waits


def _wire(entry: QueueEntry) -> dict[str, Any]:
    run = summarize(entry.directory)
    return {
        "run": entry.run,
        "position": entry.position or None,
        "status": str(run.status) if run.status else None,
        "priority": entry.request.priority,
        "after": entry.request.after,
        "devices_each": entry.request.devices,
        "devices": entry.devices,
        "group": entry.request.group,
        "at_once": entry.request.at_once,
        "held": entry.is_held,
        "reason": entry.reason,
        "added": entry.added,
        "steps": run.steps,
        "directory": str(entry.directory),
    }
