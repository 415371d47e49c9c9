"""Adds the run of a training command to the queue."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accel_engine.devices import detect
from accel_engine.errors import AccelError
from accel_engine.run.engine.status import read_info
from accel_engine.run.runs.removal import remove
from accel_engine.run.store.connection import reading
from accel_engine.run_queue import queue
from accel_engine.run_queue.dependencies import end_cancelled
from accel_engine.run_queue.needs import find_need
from accel_engine.run_queue.queue import QueueRequest
from accel_tui.cli import training_run
from accel_tui.cli.output import write
from accel_tui.cli.queue_options import QueueFlags, run_id
from accel_tui.settings.user_settings import load


def queue_new(plan_file: Path | None, fields: Mapping[str, Any], flags: QueueFlags) -> int:
    """Create a run, add it to the queue and print its id; returns the exit status."""
    request = _request(flags)
    directory = training_run.create(plan_file, fields, queued=True)
    try:
        _enqueue(directory, request)
    except AccelError:
        remove(directory)
        raise
    return 0


def queue_continuation(reference: str, changes: Mapping[str, Any], flags: QueueFlags) -> int:
    """Reopen an ended run, add it to the queue and print its id; returns the exit status."""
    request = _request(flags)
    _enqueue(training_run.reopen(reference, changes, queued=True), request)
    return 0


def _request(flags: QueueFlags) -> QueueRequest:
    return QueueRequest(flags.priority or 0, tuple(dict.fromkeys(map(run_id, flags.after))), flags.devices_each)


def _enqueue(directory: Path, request: QueueRequest) -> None:
    """Add a run to the queue, after a check of what it asks for; a run that cannot be added has ended."""
    try:
        with reading(directory) as database:
            plan = read_info(database).plan
        if plan:
            find_need(plan, request.devices, detect().devices, os.environ)
        queue.set_default_limit(load().queue_at_once)
        queue.enqueue(directory, request)
    except AccelError:
        end_cancelled(directory, "it could not be queued")
        raise
    write(directory.name)
