"""Whether trials fit in memory beside a live run, which they must not break."""

from collections.abc import Iterable, Sequence

from accel_engine.devices.device_types import Sample
from accel_engine.errors import RunError
from accel_engine.events import DevicesFound, Event
from accel_engine.memory import available_memory

MARGIN = 1.1
"""How much more than the live run a trial of a changed plan may take."""

CONTEXT = 600 << 20
"""Bytes that a process takes on a GPU besides what TensorFlow allocates, for CUDA and its libraries."""


def check_room(events: Iterable[Event], samples: Sequence[Sample], processes: int, name: str) -> None:
    """Check that some processes like a live run's engine fit beside it, as far as its last readings tell.

    Args:
        events: The run's events.
        samples: Its last readings of devices.
        processes: Their number.
        name: The run's id.

    Raises:
        RunError: They do not fit.
    """
    found = [event for event in events if isinstance(event, DevicesFound)]
    devices = found[-1].devices if found else ()
    if any(device.kind == "tpu" for device in devices):
        raise RunError(f"run {name} holds the TPU, which only one process can use: stop it, and try again")
    for device in dict.fromkeys(each.device for each in devices if each.kind == "gpu"):
        _check_gpu(device, _last(samples, device), processes, name)
    used = _last(samples, "cpu:0").get("engine_memory")
    free = float(available_memory())
    if used and used * processes * MARGIN > free:
        raise RunError(_message("this machine", used * processes * MARGIN, free, name))


def _check_gpu(device: str, readings: dict[str, float], processes: int, name: str) -> None:
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
        f"the trial does not fit beside run {name}: it takes about {needed / 1e9:,.1f} GB of memory of {where}, and "
        f"{max(0.0, free) / 1e9:,.1f} GB are free. Stop the run (accel-tui stop {name}), and try again"
    )


def _last(samples: Sequence[Sample], device: str) -> dict[str, float]:
    """The last values of a device's readings."""
    values: dict[str, float] = {}
    for sample in sorted(samples, key=lambda each: each.time):
        if sample.device == device:
            values |= {name: reading.value for name, reading in sample.readings.items() if reading.value is not None}
    return values
