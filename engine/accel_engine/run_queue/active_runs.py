"""Finds the live runs of this machine, and their devices."""

import os
import socket
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from accel_engine.errors import RunError
from accel_engine.events import DevicesFound, RunStarted
from accel_engine.run import lock
from accel_engine.run.connection import reading
from accel_engine.run.database import Database
from accel_engine.run.meta import read_meta
from accel_engine.run.process_identity import ProcessIdentity
from accel_engine.run.run_paths import runs_directory
from accel_engine.run.status import Status, read_info
from accel_engine.run.stored_events import last_event
from accel_engine.run_queue.request import StoredEntry
from accel_engine.run_queue.scheduler import ActiveRun


def active_runs(started: Iterable[StoredEntry]) -> list[ActiveRun]:
    """The live runs of this machine: those that were started from the queue, and all others.

    Args:
        started: The entries that were started, of runs that still occupy their devices.
    """
    entries = {entry.directory: entry for entry in started}
    found = [
        ActiveRun(entry.run, _accelerators(entry.devices), entry.request.group, is_starting=False)
        for entry in entries.values()
    ]
    with suppress(OSError):
        for directory in sorted(Path(entry.path) for entry in os.scandir(runs_directory())):
            if directory not in entries and lock.is_held(directory):  # which is much faster than reading the run
                with suppress(RunError):
                    found += _other_run(directory)
    return found


def occupies_devices(directory: Path) -> bool:
    """Whether a run that was started is live, or its engine still exits and so holds memory of its devices."""
    try:
        with reading(directory) as database:
            status = read_info(database).status
            if status.live:
                return status is not Status.QUEUED
            process = ProcessIdentity.parse(read_meta(database).get("process"))
    except RunError:
        return lock.is_held(directory)
    return process is not None and process.alive


def _other_run(directory: Path) -> list[ActiveRun]:
    """A run that was not started from the queue; empty if it has ended, or is on another machine."""
    with reading(directory) as database:
        info = read_info(database)
        if not info.status.live or info.host != socket.gethostname():
            return []
        devices = _devices_found(database)
    is_starting = devices is None and info.has_engine
    return [ActiveRun(directory.name, _accelerators(devices or ()), is_starting=is_starting)]


def _devices_found(database: Database) -> tuple[str, ...] | None:
    """The devices that the present engine of a run has found; ``None`` before it has."""
    started, found = last_event(database, RunStarted), last_event(database, DevicesFound)
    if found is None or (started is not None and found.time < started.time):
        return None
    return tuple(dict.fromkeys(each.device or each.name.lower() for each in found.devices))


def _accelerators(devices: Iterable[str]) -> tuple[str, ...]:
    return tuple(device for device in devices if device.startswith(("gpu:", "tpu:")))
