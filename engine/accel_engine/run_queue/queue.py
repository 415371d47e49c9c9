"""The queue of runs: add to it, list it and change it.

All functions block for some milliseconds; the dashboard calls them from a thread. They raise :exc:`RunError` if the
queue cannot be read or written, and :exc:`UsageError` for a run that does not wait in it.
"""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from accel_engine.errors import AccelError, RunError, UsageError
from accel_engine.events import Outcome
from accel_engine.places.placed_runs import cancel_job, state_of
from accel_engine.run import find_run
from accel_engine.run.directory.run_paths import host_function, runs_directory
from accel_engine.run.engine.commands import send_command
from accel_engine.run.engine.status import Status, read_info
from accel_engine.run.store.database import reading
from accel_engine.run.store.meta import PlacedRun
from accel_engine.run.writing.waiting_run import end_waiting
from accel_engine.run_queue.dependencies import Waiting, check_dependencies, waits_for, will_finish
from accel_engine.run_queue.engine_environment import chosen_variables
from accel_engine.run_queue.queue_database import (
    AT_ONCE,
    DEFAULT_AT_ONCE,
    QueueDatabase,
    changing_queue,
    database_path,
    ensure_waiter,
    open_queue,
    read_entries,
)
from accel_engine.run_queue.queue_entries import NO_REASON, PLAIN_REQUEST, QueueEntry, QueueRequest, StoredEntry
from accel_engine.text import printable_line
from accel_engine.versioned_database import current_user

__all__ = [
    "QueueEntry",
    "QueueRequest",
    "cancel",
    "enqueue",
    "ensure_waiter",
    "entries",
    "find_run_id",
    "has_default_limit",
    "hold",
    "limit",
    "move",
    "parse_limit",
    "release",
    "set_default_limit",
    "set_limit",
    "set_priority",
    "why_waits",
]

MAX_PRIORITY = 1_000_000

MAX_AT_ONCE = 1000
"""The largest limit of runs at once."""

HELD_BY = "held by "
"""Begins the reason of a run that a user holds."""


def enqueue(directory: Path, request: QueueRequest = PLAIN_REQUEST) -> None:
    """Add a queued run behind the other runs of its priority, and make sure that a process will start it.

    It will have the working directory of this process, and its environment variables that matter to training, such as
    ``CUDA_VISIBLE_DEVICES``.

    Args:
        directory: Its directory, as ``prepare_run(..., queued=True)`` and ``prepare_continuation(..., queued=True)``
            return it.
        request: What it asks for.

    Raises:
        UsageError: A run of ``after`` is unknown, runs would wait for each other, a number is out of range, or the run
            waits at a place.
        RunError: The run does not wait to be queued.
    """
    _check_priority(request.priority)
    if request.devices is not None and request.devices < 1:
        raise UsageError(f"a run gets at least one device, not {request.devices}")
    if request.at_once < 0:
        raise UsageError(f"at most {request.at_once} runs at once: it must be 0, for no limit, or more")
    directory = directory.absolute()
    with changing_queue() as queue:
        _check_is_queued(directory)
        if request.after:
            others = {entry.run: entry.request.after for entry in queue.entries()}
            check_dependencies(directory.name, request.after, others)
        queue.put(
            StoredEntry(
                directory.name,
                directory,
                request,
                queue.last_place() + 1,
                environment=chosen_variables(os.environ),
                folder=_working_directory(),
                added=time.time(),
            )
        )
    ensure_waiter()


def find_run_id(reference: str) -> str:
    """The id of a run for the queue.

    Args:
        reference: See :func:`accel_engine.run.find_run`.

    Raises:
        UsageError: There is no such run, or it is not in the directory of runs.
    """
    directory = find_run(reference)
    if not os.path.samefile(directory.parent, runs_directory()):
        raise UsageError(f"run {reference} is not in {runs_directory()}, so no run of the queue can wait for it")
    return directory.name


def entries() -> list[QueueEntry]:
    """The runs of the queue: those that were started from it and still train, then those that wait, in their order."""
    stored = read_entries()
    started = [_entry(each, 0) for each in stored if each.state == "started" and _is_live(each.directory)]
    waiting = [each for each in stored if each.is_waiting]
    return started + [_entry(each, position) for position, each in enumerate(waiting, 1)]


def cancel(run: str) -> None:
    """Stop a run: one that waits becomes ``stopped``, and keeps its plan; one that trains is asked to stop.

    A queued run without an entry, whose command was killed before it added one, is ended, too.

    Args:
        run: Its id; after ``HOST:``, one in the queue of a host.
    """
    if ":" in run:
        host_function("mirrored_runs:cancel_queued")(run)
        return
    with changing_queue() as queue:
        entry = queue.find(run)
        if entry and entry.is_waiting:
            entry = replace(entry, state="cancelled")
            queue.put(entry)
    directory = entry.directory if entry else runs_directory() / run
    if entry is None and _status(directory) is not Status.QUEUED:
        raise _not_queued(run)
    if entry and entry.state == "started":
        send_command(directory, "stop", reason="cancelled in the queue")
        return
    if placed := None if entry else _place_of(directory):
        cancel_job(placed)
    end_waiting(directory, f"cancelled in the queue by {current_user()}")
    with changing_queue() as queue:
        queue.remove(run)


def hold(run: str) -> None:
    """Let a run wait until it is released, whatever is free."""
    _change(run, lambda entry: replace(entry, hold_reason=HELD_BY + current_user(), reason=NO_REASON))


def release(run: str) -> None:
    """Let a held run start again when its turn comes; it no longer waits for runs that will not finish.

    A queued run without an entry is added at the end.
    """
    directory = runs_directory() / run
    with open_queue() as queue:
        is_missing = queue.find(run) is None
    if is_missing and _status(directory) is Status.QUEUED:
        enqueue(directory)
        return

    def released(entry: StoredEntry) -> StoredEntry:
        after = tuple(each for each in entry.request.after if will_finish(each))
        return replace(entry, hold_reason="", reason=NO_REASON, request=replace(entry.request, after=after))

    _change(run, released)
    ensure_waiter()


def move(run: str, position: int) -> None:
    """Move a run that waits to a position from 1; it takes the priority of the runs there, if its own differs."""
    with changing_queue() as queue:
        entry = _waiting(queue, run)
        others = [each for each in queue.entries() if each.is_waiting and each.run != run]
        place = min(max(position, 1), len(others) + 1) - 1
        before, after = others[:place], others[place:]
        priority = entry.request.priority
        if after:
            priority = max(priority, after[0].request.priority)
        if before:
            priority = min(priority, before[-1].request.priority)
        moved = replace(entry, request=replace(entry.request, priority=priority))
        for number, each in enumerate((*before, moved, *after), 1):
            queue.put(replace(each, place=number))
    ensure_waiter()


def set_priority(run: str, priority: int) -> None:
    """Change the priority of a run that waits: higher ones start first.

    Raises:
        UsageError: The priority is out of range.
    """
    _check_priority(priority)
    _change(run, lambda entry: replace(entry, request=replace(entry.request, priority=priority)))
    ensure_waiter()


def limit() -> int | None:
    """Most runs that train at the same time; ``None`` for as many as there are accelerators, or one on the CPU."""
    with open_queue() as queue:
        return queue.at_once


def has_default_limit() -> bool:
    """Whether :func:`limit` comes from the settings, not from the program."""
    with open_queue() as queue:
        return queue.meta(AT_ONCE) is None


def set_limit(at_once: int | None) -> None:
    """Change :func:`limit`; ``None`` for the limit of the settings again.

    Raises:
        UsageError: The limit is less than 1.
    """
    if at_once is not None and at_once < 1:
        raise UsageError(f"the queue trains at least one run at once, not {at_once}; hold runs to start none")
    with changing_queue() as queue:
        queue.set_meta(**{AT_ONCE: at_once})
    ensure_waiter()


def set_default_limit(at_once: int | None) -> None:
    """Note the limit of the settings, which holds unless :func:`set_limit` has set another."""
    if at_once is None and not database_path().is_file():
        return  # that is the default
    with open_queue() as queue:
        if queue.meta(DEFAULT_AT_ONCE) != at_once:
            queue.set_meta(**{DEFAULT_AT_ONCE: at_once})


def parse_limit(text: str) -> int | None:
    """Parse a limit for :func:`set_limit`; ``auto`` is ``None``.

    Raises:
        UsageError: The text is neither a number in the allowed range nor ``auto``.
    """
    text = text.strip()
    if text == "auto":
        return None
    if not text.isdecimal() or not 1 <= int(text) <= MAX_AT_ONCE:
        raise UsageError(f"the limit {text!r} must be a number from 1 to {MAX_AT_ONCE:,}, or auto")
    return int(text)


def why_waits(run: str) -> str:
    """Why a queued run waits; also brings a queue going again that no process works on.

    A run whose job has ended before its engine started has failed, and is ended.
    """
    if ":" in run:  # on a host
        return printable_line(host_function("mirrored_runs:why_waits")(run))
    directory = runs_directory() / run
    try:
        if placed := _place_of(directory):
            return _why_waits_at_place(directory, placed)
    except AccelError as error:
        return printable_line(str(error))
    ensure_waiter()
    try:
        found = next((entry.waits for entry in entries() if entry.run == run), None)
    except AccelError as error:
        return printable_line(str(error))
    return found or f"not in the queue; add it: accel-tui queue release {printable_line(run)}"


def _place_of(directory: Path) -> PlacedRun | None:
    """Where a run waits, if not in this queue."""
    with reading(directory) as database:
        return read_info(database).place


def _why_waits_at_place(directory: Path, placed: PlacedRun) -> str:
    state = state_of(placed)
    if state.is_over and (state := state_of(placed, newest=True)).is_over:  # a run may have the same job again
        outcome = Outcome.STOPPED if state.is_cancelled else Outcome.FAILED
        end_waiting(directory, f"{state.reason} before its engine has started", outcome)
    return state.reason


def _check_priority(priority: int) -> None:
    """Check a priority.

    Raises:
        UsageError: The priority is out of range.
    """
    if abs(priority) > MAX_PRIORITY:
        raise UsageError(f"a priority is a whole number from {-MAX_PRIORITY:,} to {MAX_PRIORITY:,}, not {priority:,}")


def _change(run: str, changed: Callable[[StoredEntry], StoredEntry]) -> None:
    with changing_queue() as queue:
        queue.put(changed(_waiting(queue, run)))


def _waiting(queue: QueueDatabase, run: str) -> StoredEntry:
    entry = queue.find(run)
    if entry and entry.state == "started":
        raise UsageError(f"run {run} does not wait in the queue: it was started")
    if entry is None or not entry.is_waiting:
        raise _not_queued(run)
    return entry


def _not_queued(run: str) -> UsageError:
    return UsageError(f"run {run} is not in the queue; accel-tui queue lists it")


def _entry(stored: StoredEntry, position: int) -> QueueEntry:
    after = Waiting() if stored.hold_reason or not position else waits_for(stored.request.after)
    return QueueEntry(
        stored.run,
        stored.directory,
        stored.request,
        position,
        is_held=bool(stored.hold_reason) or after.is_blocked,
        is_started=stored.state == "started",
        devices=stored.devices,
        reason=stored.hold_reason or after.reason or stored.reason.text,
        others=() if stored.hold_reason or after.reason else stored.reason.others,
        added=stored.added,
        has_failed=bool(stored.hold_reason) and not stored.hold_reason.startswith(HELD_BY),
    )


def _check_is_queued(directory: Path) -> None:
    status = _status(directory)
    if status is not Status.QUEUED:
        raise RunError(f"run {directory.name} is {status or 'deleted'}: only a new or a reopened run can be queued")
    if placed := _place_of(directory):
        raise UsageError(f"run {directory.name} waits at {placed.place}, which starts it")


def _is_live(directory: Path) -> bool:
    status = _status(directory)
    return status is not None and status.live


def _status(directory: Path) -> Status | None:
    """The status of a run; ``None`` if it cannot be read."""
    try:
        with reading(directory) as database:
            return read_info(database).status
    except RunError:
        return None


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was deleted
        return ""
