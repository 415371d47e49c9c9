"""Measures which devices of this machine are free, also of other people's programs."""

from collections.abc import Sequence
from typing import Self

from accel_engine.devices.device_types import Device, Probe, Sample
from accel_engine.devices.nvidia_probe import NvidiaProbe
from accel_engine.devices.tpu_probe import TpuProbe

BUSY_UTILIZATION = 10.0
"""Utilization in percent from which an accelerator is in use; a desktop stays below."""

BUSY_MEMORY = 0.1
"""Share of its memory from which an accelerator is in use; a desktop stays below, and TensorFlow takes more."""


class MachineReader:
    """Finds the accelerators of this machine once, and reads them.

    Args:
        probes: Probes of accelerators; all by default.
    """

    def __init__(self, probes: Sequence[Probe] | None = None) -> None:
        self._probes = (NvidiaProbe(), TpuProbe()) if probes is None else tuple(probes)
        found = [probe.inventory().devices for probe in self._probes]
        self.devices: tuple[Device, ...] = tuple(device for devices in found for device in devices)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def in_use(self) -> dict[str, str]:
        """Who uses each accelerator, by its id; empty for nobody."""
        used = {device.id: "" for device in self.devices}
        for sample in (sample for probe in self._probes for sample in probe.sample()):
            used[sample.device] = why_in_use(sample)
        return used

    def close(self) -> None:
        """Close the drivers' libraries."""
        for probe in self._probes:
            probe.close()


def why_in_use(sample: Sample) -> str:
    """Who uses an accelerator, as measured; empty for nobody, or if its driver measures nothing."""
    readings = sample.readings
    values = {name: reading.value for name, reading in readings.items() if reading.value is not None}
    if "memory_used" not in readings and not values:
        return f"cannot be read: {', '.join(reading.reason for reading in readings.values())}"
    holders = readings["processes"].items if "processes" in readings else ()
    names = f" ({', '.join(item.name for item in holders[:3])})" if holders else ""
    if sample.device.startswith("tpu:") and holders:
        return f"is held by another program{names}"
    used, total = values.get("memory_used"), values.get("memory_total")
    if used is not None and total and used > BUSY_MEMORY * total:
        return f"has {used / 1e9:.1f} of {total / 1e9:.1f} GB in use{names}"
    if (busy := values.get("utilization", 0.0)) >= BUSY_UTILIZATION:
        return f"is {busy:.0f}% busy{names}"
    return ""
