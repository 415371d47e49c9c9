"""Measures which devices of this machine are free, also of other people's programs."""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Self

import psutil

from accel_engine.devices.device_types import ASLEEP, CountedItem, Device, Probe, Reading, Sample
from accel_engine.devices.installation import with_unlisted_gpus
from accel_engine.devices.nvidia_gpu import NvidiaProbe
from accel_engine.devices.nvidia_queries import UNKNOWN_PROCESS
from accel_engine.devices.tpu_probe import TpuProbe
from accel_engine.errors import AccelError, RunError
from accel_engine.json_values import decode_or_none
from accel_engine.plan import Plan
from accel_engine.plan.placement import resolve_placement
from accel_engine.run.directory import lock
from accel_engine.run.directory.run_paths import home
from accel_engine.run.engine.process_identity import ProcessIdentity
from accel_engine.run.engine.status import Status, read_info
from accel_engine.run.runs.devices_in_use import devices_in_use
from accel_engine.run.store.database import reading
from accel_engine.run.store.meta import read_meta
from accel_engine.run_queue.decision import IDLE_SECONDS, STAYS_IDLE, ActiveRun
from accel_engine.run_queue.queue_entries import StoredEntry
from accel_engine.words import numbers

BUSY_UTILIZATION = 10.0
"""Utilization in percent from which an accelerator is in use; a desktop stays below."""

BUSY_MEMORY = float(2 << 30)
"""Bytes of its memory from which an accelerator is in use; a desktop stays below."""


_ENGINE = "accel_engine.process"


def reservation(device: str) -> str:
    """The file in the program's directory that a request locks while it computes on a GPU."""
    return f"{device.replace(':', '-')}.lock"


def is_reserved(device: str) -> bool:
    """Whether an evaluation, a prediction or an export computes on a GPU, or will at once."""
    return lock.is_locked(home(), reservation(device))


class MachineReader:
    """Finds the accelerators of this machine once, and reads them.

    Args:
        probes: Probes of accelerators; all by default.
        clock: Returns the time in seconds.

    Attributes:
        devices: The accelerators.
        why_no_gpu: Why there is no GPU; empty if there is one.
        samples: The last readings of each accelerator, by its id.
    """

    def __init__(self, probes: Sequence[Probe] | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._probes = (NvidiaProbe(), TpuProbe()) if probes is None else tuple(probes)
        self._clock = clock
        self._idle_since: dict[str, float] = {}
        found = [probe.inventory() for probe in self._probes]
        self.devices: tuple[Device, ...] = tuple(device for inventory in found for device in inventory.devices)
        self.why_no_gpu = next(filter(None, (inventory.why_unavailable("gpu") for inventory in found)), "")
        self.samples: dict[str, Sample] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def in_use(self) -> dict[str, str]:
        """Who uses each accelerator, by its id; empty for nobody, for :data:`IDLE_SECONDS`."""
        self.samples = {sample.device: sample for probe in self._probes for sample in probe.sample()}
        return {device.id: self._who_uses(device, self.samples.get(device.id)) for device in self.devices}

    def close(self) -> None:
        """Close the drivers' libraries."""
        for probe in self._probes:
            probe.close()

    def _who_uses(self, device: Device, sample: Sample | None) -> str:
        reason = device.problem or (why_in_use(sample) if sample else "cannot be read")
        if not reason and is_reserved(device.id):
            reason = "is used by an evaluation, a prediction or an export"
        if reason:
            self._idle_since.pop(device.id, None)
            return reason
        idle = self._clock() - self._idle_since.setdefault(device.id, self._clock())
        return "" if idle >= IDLE_SECONDS else STAYS_IDLE


def why_in_use(sample: Sample) -> str:
    """Who uses an accelerator, as measured; empty for nobody, or if it is suspended because nobody does."""
    readings = sample.readings
    values = {name: reading.value for name, reading in readings.items() if reading.value is not None}
    if not values.keys() & {"memory_used", "utilization", "processes"}:
        reasons = dict.fromkeys(reading.reason for reading in readings.values() if reading.reason)
        return "" if ASLEEP in reasons else f"cannot be read: {', '.join(reasons)}"
    holders = [item for item in readings.get("processes", Reading(None)).items if not _is_own(item)]
    names = f" ({', '.join(item.name for item in holders[:3])})" if holders else ""
    used, total = values.get("memory_used", 0.0), values.get("memory_total")
    if used > BUSY_MEMORY:
        return f"has {numbers.size(used)}{f' of {numbers.size(total)}' if total else ''} in use{names}"
    if (busy := values.get("utilization", 0.0)) >= BUSY_UTILIZATION:
        return f"is {busy:.0f}% busy{names}"
    is_in_use = sample.device.startswith("tpu:") or any(item.computes for item in holders)
    return f"is used by another program{names}" if holders and is_in_use else ""


def _is_own(holder: CountedItem) -> bool:
    """Whether a process is an engine of this user that trains a run, which the queue knows, or waits for one."""
    if holder.name == UNKNOWN_PROCESS:
        return False
    try:
        process = psutil.Process(int(holder.id))
        command, user = process.cmdline(), process.uids().real
    except (psutil.Error, OSError, ValueError):
        return False
    options = command[command.index(_ENGINE) + 1 :] if _ENGINE in command else ["another program"]
    return user == os.getuid() and (not options or "--run" in options)


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
        return lock.is_locked(directory)
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
        placement = resolve_placement(plan, with_unlisted_gpus(devices, plan.devices))
    except AccelError:  # the run's creation reports it
        return []
    wanted = set(map(_physical, placement.devices))
    return [
        each.run for each in devices_in_use() if not each.devices or wanted.intersection(map(_physical, each.devices))
    ]


def _physical(device: str) -> str:
    """TensorFlow's virtual CPUs are all the same one."""
    return "cpu" if device.startswith("cpu") else device
