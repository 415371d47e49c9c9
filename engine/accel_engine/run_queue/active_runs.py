"""Finds the live runs of this machine and their devices, also those that a plan would share."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from accel_engine.devices.device_types import Device
from accel_engine.errors import AccelError, RunError
from accel_engine.json_values import decode_or_none
from accel_engine.plan import Plan
from accel_engine.plan.placement import resolve_placement
from accel_engine.run.directory import lock
from accel_engine.run.engine.process_identity import ProcessIdentity
from accel_engine.run.engine.status import Status, read_info
from accel_engine.run.runs.devices_in_use import devices_in_use
from accel_engine.run.store.connection import reading
from accel_engine.run.store.meta import read_meta
from accel_engine.run_queue.decision import ActiveRun
from accel_engine.run_queue.request import StoredEntry


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
    others = devices_in_use(except_for=entries)
    return found + [ActiveRun(each.run, _accelerators(each.devices), is_starting=each.is_starting) for each in others]


def occupies_devices(directory: Path) -> bool:
    """Whether a run that was started is live, or its engine still exits and so holds memory of its devices."""
    try:
        with reading(directory) as database:
            status = read_info(database).status
            if status.live:
                return status is not Status.QUEUED
            process = decode_or_none(read_meta(database).get("process"), ProcessIdentity)
    except RunError:
        return lock.is_held(directory)
    return process is not None and process.alive


def _accelerators(devices: Iterable[str]) -> tuple[str, ...]:
    return tuple(device for device in devices if device.startswith(("gpu:", "tpu:")))


def busy_runs(plan: Plan, devices: Sequence[Device]) -> list[str]:
    """Ids of the live runs that train on the plan's devices, or on unknown ones.

    Args:
        plan: The plan.
        devices: The devices of the machine.
    """
    try:
        placement = resolve_placement(plan, devices)
    except AccelError:  # the run's creation reports it
        return []
    wanted = set(map(_physical, placement.devices))
    return [
        each.run for each in devices_in_use() if not each.devices or wanted.intersection(map(_physical, each.devices))
    ]


def _physical(device: str) -> str:
    """TensorFlow's virtual CPUs are all the same one."""
    return "cpu" if device.startswith("cpu") else device
