"""Measures the energy of the devices that a plan trains on, where it can be read."""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from accel_engine.devices.device_types import Device
from accel_engine.devices.energy_meter import IntervalMeter, energy_meter

_POWERCAP = Path("/sys/class/powercap")
"""Where Linux has the energy counters of processors (RAPL)."""

_ZONE = re.compile(r"intel-rapl:\d+$")
"""The counter of a whole processor, or of the platform with it, ``psys``; parts of processors have longer names."""


@dataclass(frozen=True, slots=True)
class Meters:
    """The meters of all devices of a plan."""

    meters: tuple[IntervalMeter, ...] = ()
    """A meter for each device."""
    measured: str = ""
    """``cpu`` or ``gpu``: whose energy is measured, of GPUs without the processor's; empty without meters."""
    problem: str = ""
    """Why there are no meters; empty if there are."""

    def start(self) -> None:
        """Begin to measure."""
        for meter in self.meters:
            meter.start()

    def stop(self) -> float | None:
        """Joules of all devices together; ``None`` without meters, or if one cannot be read."""
        found = [meter.stop() for meter in self.meters]
        known = [each for each in found if each is not None]
        return sum(known) if known and len(known) == len(found) else None


MakeMeters = Callable[[Sequence[Device], Sequence[str]], Meters]
"""Makes the meters of a plan, from the machine's devices and the ids of those that train."""


class PackageMeter:
    """Measures joules of a processor, with all programs on it.

    Args:
        folder: Its directory in ``/sys/class/powercap``.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._before: int | None = None

    def start(self) -> None:
        """Begin to measure."""
        self._before = self._read("energy_uj")

    def stop(self) -> float | None:
        """Joules since the start; ``None`` if the counter cannot be read."""
        after, most = self._read("energy_uj"), self._read("max_energy_range_uj")
        if self._before is None or after is None or (after < self._before and most is None):
            return None
        taken = after - self._before + ((most or 0) if after < self._before else 0)  # the counter starts again at 0
        return taken / 1e6

    def _read(self, name: str) -> int | None:
        with suppress(OSError, ValueError):
            return int((self._folder / name).read_text())
        return None


def find_meters(devices: Sequence[Device], names: Sequence[str], powercap: Path = _POWERCAP) -> Meters:
    """The meters of the devices that train.

    Args:
        devices: The machine's devices.
        names: The ids of those that train, such as ``gpu:0``.
        powercap: Directory of the counters of processors.
    """
    kinds = {name.partition(":")[0] for name in names}
    if kinds == {"gpu"}:
        return _gpu_meters([device for device in devices if device.id in names])
    return _cpu_meters(powercap) if kinds == {"cpu"} else Meters(problem="the energy of TPUs cannot be read")


def _gpu_meters(devices: Sequence[Device]) -> Meters:
    try:
        found = [energy_meter(device.address) for device in devices]
    except ImportError:
        return Meters(problem="the NVIDIA management library is missing")
    if not found or None in found:
        return Meters(problem="the energy of this GPU cannot be read from its driver")
    return Meters(tuple(meter for meter in found if meter is not None), "gpu")


def _cpu_meters(powercap: Path) -> Meters:
    folders = sorted(filter(_is_package, powercap.glob("intel-rapl:*")))
    if not folders:
        return Meters(problem="the energy of this CPU cannot be read: Linux has no counter (RAPL) of it")
    meters = tuple(PackageMeter(each) for each in folders)
    try:
        for each in folders:
            (each / "energy_uj").read_text()
    except OSError:
        return Meters(problem="the energy of this CPU can be read by root only")
    return Meters(meters, "cpu")


def _is_package(folder: Path) -> bool:
    """Whether a counter is that of a whole processor, and nothing else."""
    with suppress(OSError):
        return bool(_ZONE.match(folder.name)) and (folder / "name").read_text().startswith("package")
    return False
