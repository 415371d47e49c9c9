"""Finds the devices of this machine that runs are training on."""

import os
import socket
from collections.abc import Container, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from accel_engine.errors import RunError
from accel_engine.events import DevicesFound, RunStarted
from accel_engine.run.directory import lock
from accel_engine.run.directory.run_paths import LOCK, WATCHER_LOCK, runs_directory
from accel_engine.run.engine.status import read_info
from accel_engine.run.store.database import RunDatabase, reading
from accel_engine.run.store.stored_events import last_event


@dataclass(frozen=True, slots=True)
class DevicesInUse:
    """A run that is training."""

    run: str
    """Its id."""
    devices: tuple[str, ...]
    """Ids of its devices, such as ``gpu:0``; empty if they are not known yet, or never will be, as in a script."""
    is_starting: bool = False
    """Whether its engine has not found its devices yet."""


def devices_in_use(except_for: Container[Path] = ()) -> list[DevicesInUse]:
    """The live runs on this machine, by id; without those that cannot be read, or whose engine has not started yet.

    A run whose engine will be started again by its ``keep_alive`` keeps its devices.

    Args:
        except_for: Directories of runs to leave out.
    """
    found: list[DevicesInUse] = []
    with suppress(OSError):
        for directory in sorted(Path(entry.path) for entry in os.scandir(runs_directory())):
            if directory not in except_for and any(  # which is much faster than reading the run
                lock.is_locked(directory, name) for name in (LOCK, WATCHER_LOCK)
            ):
                with suppress(RunError):
                    found += _of_run(directory)
    return found


def runs_on(wanted: Sequence[str]) -> list[DevicesInUse]:
    """The live runs on this machine that train on some devices, with these, or whose devices are unknown.

    Args:
        wanted: Such as ``cpu``, ``gpu`` or ``gpu:1``; empty for all devices.
    """
    found: list[DevicesInUse] = []
    for each in devices_in_use():
        shared = [device for device in each.devices if not wanted or _names(device) & set(wanted)]
        if shared or not each.devices:
            found.append(DevicesInUse(each.run, tuple(shared)))
    return found


def _names(device: str) -> set[str]:
    """The ways to name a device; TensorFlow has a single CPU, ``cpu:0``, and runs may have virtual ones."""
    kind = device.partition(":")[0]
    return {kind, "cpu:0"} if kind == "cpu" else {kind, device}


def _of_run(directory: Path) -> list[DevicesInUse]:
    """A live run of this machine with its devices; empty for an ended run, and one of another machine.

    Raises:
        RunError: The run cannot be read.
    """
    with reading(directory) as database:
        info = read_info(database)
        if not info.status.live or info.host != socket.gethostname():
            return []
        devices = devices_found(database)
    return [DevicesInUse(directory.name, devices or (), is_starting=devices is None and info.has_engine)]


def devices_found(database: RunDatabase) -> tuple[str, ...] | None:
    """The devices that the present engine of a run has found; ``None`` before it has."""
    started, found = last_event(database, RunStarted), last_event(database, DevicesFound)
    if found is None or (started is not None and found.time < started.time):
        return None
    return tuple(dict.fromkeys(each.device or each.name.lower() for each in found.devices))
