"""Rules on the load of the machine: throttling, other programs, swapping."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from accel_engine.advice.finding import Confidence, Cure, Evidence, Finding, Gain, speed_finding
from accel_engine.advice.recorded import Recorded
from accel_engine.run.store.steps import THROUGHPUT
from accel_engine.words.numbers import percent, size, times

MIN_SAMPLES = 5
"""Readings from which a device is judged, about as many seconds."""

THROTTLED = 0.2
"""Share of the readings from which throttling matters."""

HEAT = ("thermal", "temperature", "heat")
"""Words of reasons that are heat. A limit of power is normal at full load, unless the clock falls far."""

CLOCK_DROP = 0.8
"""Share of the highest clock below which a limit of power costs much."""

_COOL = "cool the GPU better: free its vents, raise its fan, or lower its limit of power to hold an even clock"
_POWER = "raise the limit of power (nvidia-smi -pl) if the machine allows it, or use --precision mixed_bfloat16"

NEIGHBOUR_CPU = 60.0
"""Utilization of all processors by other programs, in percent, from which they matter."""

NEIGHBOUR_MEMORY = 0.05
"""Share of an accelerator's memory that another process must have: one that is idle has only a context."""

SWAP_GROWTH, MEMORY_FULL = 0.02, 0.9
"""Shares of the host's memory: the swap that grew in the run, and memory in use meanwhile."""


def throttling(recorded: Recorded) -> Iterator[Finding]:
    """A GPU runs at lower clocks than it can, because of heat or of its limit of power."""
    for device in recorded.training_devices:
        reasons = _throttle_reasons(recorded, device)
        if len(reasons) < MIN_SAMPLES:
            continue
        counts = Counter(name for names in reasons for name in names)
        for name, count in counts.most_common():
            share, hot = count / len(reasons), any(word in name.lower() for word in HEAT)
            drop = _clock_share(recorded, device)
            if share < THROTTLED or not (hot or "brake" in name.lower() or (drop is not None and drop < CLOCK_DROP)):
                continue
            yield _throttled(recorded, device, name, share, drop, hot=hot)
            break


def neighbours(recorded: Recorded) -> Iterator[Finding]:
    """Other programs use the devices that train."""
    for device in recorded.training_devices:
        found = _cpu_neighbours(recorded) if device.startswith("cpu") else _processes(recorded, device)
        if found:
            yield found


def swapping(recorded: Recorded) -> Iterator[Finding]:
    """The host swaps memory to disk while the run trains."""
    _, swap = recorded.readings("cpu:0", "swap_used")
    _, used = recorded.readings("cpu:0", "memory_used")
    _, total = recorded.readings("cpu:0", "memory_total")
    if min(len(swap), len(used), len(total)) < MIN_SAMPLES:
        return
    growth, full = float(swap.max() - swap[0]), float(used.max())
    if growth < SWAP_GROWTH * total[-1] or full < MEMORY_FULL * total[-1]:
        return
    yield speed_finding(
        id="swapping",
        title=f"The machine swaps: {size(growth)} went to disk during the run",
        evidence=(
            Evidence(f"swap grew from {size(swap[0])} to {size(swap.max())}", THROUGHPUT),
            Evidence(f"{size(full)} of {size(total[-1])} of memory were in use"),
        ),
        confidence=Confidence.CERTAIN,
        cost="steps wait for the disk",
        cures=(
            Cure(
                "take less memory: --micro-batches, --remat on or a smaller batch; accel-tui estimate shows its parts",
                script="take less memory: a smaller batch, no dataset.cache(), fewer workers",
            ),
            Cure("end other programs that take memory"),
        ),
        weight=0.9,
    )


def _throttled(recorded: Recorded, device: str, name: str, share: float, drop: float | None, *, hot: bool) -> Finding:
    _, celsius = recorded.readings(device, "temperature")
    heat = [Evidence(f"up to {celsius.max():.0f} degrees Celsius")] if hot and len(celsius) else []
    clock = [Evidence(f"the median clock was {percent(drop)} of the highest one")] if drop is not None else []
    slow = drop is not None and drop < CLOCK_DROP
    gain = Gain(f"up to {times(1 / drop)} the steps per second", "its clock", 1 / drop) if slow and drop else None
    return speed_finding(
        id="throttling",
        title=f"{device} is throttled in {percent(share)} of its readings: {name}",
        evidence=(Evidence(f"{name} in {percent(share)} of the readings", THROUGHPUT), *clock, *heat),
        confidence=Confidence.CERTAIN,
        cost=f"a clock of {percent(drop)} of the highest one" if slow and drop else "a lower clock",
        cures=(
            Cure(
                _COOL if hot else _POWER,
                gain=gain,
            ),
        ),
        weight=max(0.2, 1 - drop) if drop is not None else 0.3,
    )


def _throttle_reasons(recorded: Recorded, device: str) -> list[tuple[str, ...]]:
    """The names of the reasons in each reading of a device."""
    readings = [sample.readings.get("throttling") for sample in recorded.training_samples if sample.device == device]
    return [tuple(item.name for item in reading.items) for reading in readings if reading and reading.value is not None]


def _clock_share(recorded: Recorded, device: str) -> float | None:
    """The median clock as a share of the highest one; ``None`` if unknown."""
    _, clock = recorded.readings(device, "clock_sm")
    return float(np.median(clock) / clock.max()) if len(clock) >= MIN_SAMPLES and clock.max() > 0 else None


def cpu_use_of_others(recorded: Recorded) -> float | None:
    """The median utilization of all processors by other programs, in percent; ``None`` with too few readings."""
    own = [
        (whole.value, engine.value)
        for sample in recorded.training_samples
        if sample.device == "cpu:0"
        and (whole := sample.readings.get("utilization"))
        and (engine := sample.readings.get("engine_cpu"))
        and whole.value is not None
        and engine.value is not None
    ]
    if len(own) < MIN_SAMPLES or not recorded.cores:
        return None
    return float(np.median([max(0.0, whole - engine / recorded.cores) for whole, engine in own]))


def _cpu_neighbours(recorded: Recorded) -> Finding | None:
    others = cpu_use_of_others(recorded)
    if recorded.workers or others is None or others < NEIGHBOUR_CPU:  # other workers are other programs
        return None
    return _neighbour("cpu:0", f"other programs took {others:.0f}% of the processors' time in the median")


def _processes(recorded: Recorded, device: str) -> Finding | None:
    """Processes on an accelerator that are not the run's, with much memory, seen in half of the readings."""
    started = recorded.history.started
    own = str(started.pid) if started else ""
    readings = [sample.readings.get("processes") for sample in recorded.training_samples if sample.device == device]
    known = [reading.items for reading in readings if reading and reading.value is not None]
    # In a container, the driver has other process ids than here: all would be strangers.
    if len(known) < MIN_SAMPLES or not any(item.id == own for items in known for item in items):
        return None
    _, total = recorded.readings(device, "memory_total")
    least = NEIGHBOUR_MEMORY * float(total[-1]) if len(total) else 0.0
    counts = Counter((item.name, item.id) for items in known for item in items if (item.memory or 0) > least)
    usual = [f"{name} ({pid})" for (name, pid), count in counts.items() if pid != own and 2 * count >= len(known)]
    if not usual:
        return None
    text = f"{', '.join(usual[:3])} had more than {size(least)} each in half of {len(known):,} readings or more"
    return _neighbour(device, text)


def _neighbour(device: str, text: str) -> Finding:
    return speed_finding(
        id="neighbours",
        title=f"Other programs use {device}",
        evidence=(Evidence(text, THROUGHPUT),),
        confidence=Confidence.CERTAIN,
        cost="they share the device's time",
        cures=(Cure("end them, or wait for them"),),
        weight=0.2,
    )
