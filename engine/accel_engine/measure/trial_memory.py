"""Whether trials fit in memory: beside each other, and beside live runs, which they must not break."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from accel_engine.devices import detect
from accel_engine.devices.device_types import Device, Sample
from accel_engine.errors import RunError
from accel_engine.memory import available_memory
from accel_engine.plan import Plan
from accel_engine.plan.placement import devices_of_workers, process_count
from accel_engine.plan.resolved_plan import resolve
from accel_engine.run import RunReader
from accel_engine.run.directory.run_paths import runs_directory
from accel_engine.run.history.history import History, fold
from accel_engine.run.runs.devices_in_use import DevicesInUse, runs_on
from accel_engine.words import numbers

MARGIN = 1.2
"""How much more than a known process one of a changed plan may take."""

CONTEXT = 600 << 20
"""Bytes that a process takes on a GPU besides what TensorFlow allocates, for CUDA and its libraries."""


@dataclass(frozen=True, slots=True)
class PlacedTrial:
    """Where a trial takes memory."""

    processes: int = 1
    """Number of its engine processes, which all take memory of the host."""
    devices: tuple[str, ...] = ()
    """Ids of the devices that train, such as ``gpu:0``, each for one of the processes; empty if unknown, which counts
    as all."""


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


def check_trial_memory(trials: Sequence[PlacedTrial], *, grows: bool = False) -> list[DevicesInUse]:
    """Check that trials leave enough memory to the live runs on their devices; returns these runs.

    Args:
        trials: The trials that run at the same time.
        grows: Whether they take more and more memory, until it does not suffice.

    Raises:
        RunError: The trials leave too little memory, or need an unknown amount.
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
        check_beside_run(fold(History(), update.events), tuple(update.samples), trials, each.run)
    return found


def check_beside_run(history: History, samples: Sequence[Sample], trials: Sequence[PlacedTrial], name: str) -> None:
    """Check that trials whose processes are like a live run's engine fit beside it, by its last readings.

    Args:
        history: What follows from the run's events.
        samples: Its last readings of devices.
        trials: The trials that run at the same time.
        name: The run's id.

    Raises:
        RunError: The run holds a TPU, or the trials need more memory than is free.
    """
    devices = history.devices.devices if history.devices else ()
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


DEVICE_SHARE = 0.9
"""The share of a device's memory that processes may take together."""

MAX_CONCURRENT = 6
"""Configurations that take turns, beside the reference, however much memory there is: a round should be short."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The memory of a configuration."""

    resident: float
    """Resident bytes of its processes."""
    grown: float = 0.0
    """Bytes by which they have grown since they were started; 0 if unknown."""
    device: float | None = None
    """Bytes on its accelerator; ``None`` if unknown, or on a CPU."""


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """The memory that configurations may take together."""

    device_memory: int | None = None
    """Bytes of the device that trains; ``None`` for a CPU."""
    is_exclusive: bool = False
    """Whether only one process at a time can use the device."""
    available: Callable[[], int] = available_memory
    """Tells the free bytes of this machine."""

    def lacking(self, usage: Usage, factor: float) -> str:
        """Why the process of another configuration does not fit in the host's memory; empty if it does.

        Args:
            usage: The memory of the reference.
            factor: By how much larger the batches of the configuration are.
        """
        needed = MARGIN * (usage.resident + max(0.0, factor - 1) * usage.grown)
        free = float(self.available())
        if needed <= free:
            return ""
        return f"it takes about {numbers.size(needed)} of memory, and {numbers.size(max(0.0, free))} are free"

    def fits(self, running: int, usage: Usage, factor: float) -> bool:
        """Whether another configuration fits beside those that run.

        Args:
            running: Number of processes that run.
            usage: The memory of the reference.
            factor: By how much larger the batches of the configuration are.
        """
        if self.is_exclusive or running > MAX_CONCURRENT or self.lacking(usage, factor):
            return False
        device = usage.device
        if self.device_memory is None:
            return True
        if device is None:
            return False
        needed = running * (device + CONTEXT) + MARGIN * device * max(1.0, factor) + CONTEXT
        return needed <= DEVICE_SHARE * self.device_memory


@dataclass(frozen=True, slots=True)
class FittingPlans:
    """Whether plans fit in memory beside live runs."""

    has_runs: bool
    """Whether a live run trains on a device of a trial."""
    refused: dict[str, str] = field(default_factory=dict)
    """Why plans are refused, by name."""


def find_fitting_plans(reference: Plan, others: Mapping[str, Plan], devices: Sequence[Device]) -> FittingPlans:
    """Find the plans that fit in memory beside live runs and, at the same time, a trial of the reference.

    On an accelerator of a live run none has larger batches than the reference, as it is not known what these take.

    Args:
        reference: The plan that is tried in any case.
        others: The other plans by name.
        devices: The machine's devices.

    Raises:
        RunError: The reference does not fit, or none of the others does.
    """
    placed = place_trial(reference, devices)
    has_runs = bool(check_trial_memory((placed,)))
    checked: dict[PlacedTrial, list[DevicesInUse] | RunError] = {}
    refused: dict[str, str] = {}
    for name, plan in others.items():
        other = place_trial(plan, devices)
        if other not in checked:
            checked[other] = _check((placed, other))
        runs = checked[other]
        if isinstance(runs, RunError):
            refused[name] = str(runs)
        elif plan.batch_size > reference.batch_size and _are_on_accelerator(runs):
            refused[name] = "a live run trains on the same device"
    errors = [runs for runs in checked.values() if isinstance(runs, RunError)]
    if errors and len(errors) == len(checked):
        raise errors[0]
    return FittingPlans(has_runs or any(checked.values()), refused)


def _check(trials: Sequence[PlacedTrial]) -> list[DevicesInUse] | RunError:
    try:
        return check_trial_memory(trials)
    except RunError as error:
        return error


def _are_on_accelerator(runs: Sequence[DevicesInUse]) -> bool:
    return any(not device.startswith("cpu") for run in runs for device in run.devices)
