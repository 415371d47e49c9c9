"""Whether trials fit in memory beside a live run, which they must not break."""

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass

from accel_engine.devices import detect
from accel_engine.devices.device_types import Device, Sample
from accel_engine.errors import RunError
from accel_engine.events import DevicesFound, Event
from accel_engine.memory import available_memory
from accel_engine.plan import Plan
from accel_engine.plan.placement import devices_of_workers, process_count
from accel_engine.plan.resolved_plan import resolve
from accel_engine.run import RunReader
from accel_engine.run.directory.run_paths import runs_directory
from accel_engine.run.reading.reader import drop_discarded
from accel_engine.run.runs.devices_in_use import DevicesInUse, runs_on
from accel_engine.words import numbers

MARGIN = 1.1
"""How much more than the live run a trial of a changed plan may take."""

CONTEXT = 600 << 20
"""Bytes that a process takes on a GPU besides what TensorFlow allocates, for CUDA and its libraries."""


@dataclass(frozen=True, slots=True)
class PlacedTrial:
    """Where a trial takes memory.

    Attributes:
        processes: Number of its engine processes, which all take memory of the host.
        devices: Ids of the devices that train, such as ``gpu:0``, each for one of the processes; empty if unknown,
            which counts as all.
    """

    processes: int = 1
    devices: tuple[str, ...] = ()


def place_trial(plan: Plan, devices: Sequence[Device] | None = None) -> PlacedTrial:
    """Where a trial of a plan takes memory.

    Args:
        plan: The plan.
        devices: The machine's devices; detected if ``None``.
    """
    return PlacedTrial(process_count(plan), devices_of(plan, devices))


def devices_of(plan: Plan, devices: Sequence[Device] | None = None) -> tuple[str, ...]:
    """Ids of the devices of this machine that a plan trains on, in all processes; empty if they are unknown.

    Args:
        plan: The plan.
        devices: The machine's devices; detected if ``None``.
    """
    devices = detect().devices if devices is None else devices
    placement = resolve(plan, devices).placement
    if placement is not None and plan.local_workers:
        return devices_of_workers(plan, devices)
    return placement.devices if placement else ()


def check_room_on(trials: Sequence[PlacedTrial], *, grows: bool = False) -> list[DevicesInUse]:
    """Check that trials leave the live runs on their devices their memory; returns these runs.

    Args:
        trials: Those that run at the same time.
        grows: Whether they take more and more memory, until it does not suffice.

    Raises:
        RunError: They do not, or cannot be known to.
    """
    is_known = all(trial.devices for trial in trials)
    found = runs_on([device for trial in trials for device in trial.devices] if is_known else ())
    for each in found:
        used = [device for device in each.devices if not device.startswith("cpu")]
        if grows and used:
            raise RunError(
                f"run {each.run} trains on {used[0]}, whose memory would be filled: stop the run (accel-tui stop "
                f"{each.run}), and try again"
            )
        with closing(RunReader(runs_directory() / each.run, steps=False, max_samples=64)) as reader:
            update = reader.poll()
        check_room(drop_discarded(update.events), tuple(update.samples), trials, each.run)
    return found


def check_room(events: Iterable[Event], samples: Sequence[Sample], trials: Sequence[PlacedTrial], name: str) -> None:
    """Check that trials whose processes are like a live run's engine fit beside it, as far as its last readings tell.

    Args:
        events: The run's events.
        samples: Its last readings of devices.
        trials: Those that run at the same time.
        name: The run's id.

    Raises:
        RunError: They do not fit.
    """
    found = [event for event in events if isinstance(event, DevicesFound)]
    devices = found[-1].devices if found else ()
    if any(device.kind == "tpu" for device in devices):
        raise RunError(f"run {name} holds the TPU, which only one process can use: stop it, and try again")
    for device in dict.fromkeys(each.device for each in devices if each.kind == "gpu"):
        _check_gpu(device, _last(samples, device), sum(_uses(trial, device) for trial in trials), name)
    used = _last(samples, "cpu:0").get("engine_memory")
    needed, free = (used or 0.0) * sum(trial.processes for trial in trials) * MARGIN, float(available_memory())
    if needed > free:
        raise RunError(_message("this machine", needed, free, name))


def _uses(trial: PlacedTrial, device: str) -> bool:
    """Whether a trial may train on a device, which is empty if unknown."""
    return not device or not trial.devices or device in trial.devices


def _check_gpu(device: str, readings: dict[str, float], processes: int, name: str) -> None:
    if not processes:
        return
    known = ("allocated_peak", "memory_used", "memory_total")
    if any(each not in readings for each in known):
        raise RunError(
            f"run {name} trains on {device}, whose free memory is unknown, so a trial might break it: stop it, and try "
            "again"
        )
    needed = processes * (MARGIN * readings["allocated_peak"] + CONTEXT)
    free = readings["memory_total"] - readings["memory_used"]
    if needed > free:
        raise RunError(_message(device, needed, free, name))


def _message(where: str, needed: float, free: float, name: str) -> str:
    return (
        f"the trial does not fit beside run {name}: it takes about {numbers.size(needed)} of memory of {where}, and "
        f"{numbers.size(max(0.0, free))} are free. Stop the run (accel-tui stop {name}), and try again"
    )


def _last(samples: Sequence[Sample], device: str) -> dict[str, float]:
    """The last values of a device's readings."""
    values: dict[str, float] = {}
    for sample in sorted(samples, key=lambda each: each.time):
        if sample.device == device:
            values |= {name: reading.value for name, reading in sample.readings.items() if reading.value is not None}
    return values
