"""Google's TPU chips, as the kernel shows them, without any library."""

import time
from dataclasses import dataclass
from pathlib import Path

from accel_engine.devices.address import normalise
from accel_engine.devices.reading import Absence, Device, Inventory, Reading, Sample

GOOGLE = "0x1ae0"
"""Google's PCI vendor id."""

_UNREAD = "not read: only the program that holds the chip can tell"


@dataclass(frozen=True, slots=True)
class Generation:
    """A kind of TPU chip.

    Attributes:
        name: What Google calls it.
        gibibytes: Memory of a chip.
        cores: TensorCores of a chip.
        vfio: Whether it is driven from user space (``/dev/vfio/GROUP``), not by a driver of its own
            (``/dev/accelN``).
    """

    name: str
    gibibytes: int
    cores: int
    vfio: bool = True


GENERATIONS: dict[tuple[str, str], Generation] = {
    ("0x0027", "0x004e"): Generation("TPU v2", 16, 2, vfio=False),
    ("0x0027", "0x004f"): Generation("TPU v3", 32, 2, vfio=False),
    ("0x005e", ""): Generation("TPU v4", 32, 2, vfio=False),
    ("0x0063", ""): Generation("TPU v5e", 16, 1),
    ("0x0062", ""): Generation("TPU v5p", 95, 2),
    ("0x006f", ""): Generation("TPU v6e", 32, 1),
    ("0x0076", ""): Generation("TPU 7x", 192, 2),
}
"""Chips by PCI device id, and by subsystem device id where one device id serves two generations.

Ids are those that Google's ``tpu-info`` knows; memory and cores are a chip's, from the Cloud TPU
documentation's page of each generation.
"""


@dataclass(frozen=True, slots=True)
class Chip:
    """A TPU chip of this machine.

    Attributes:
        device: As the inventory has it.
        node: The file through which programs use it; ``None`` when the kernel names none.
    """

    device: Device
    node: Path | None


class TpuProbe:
    """Finds TPU chips on the PCI bus.

    What a chip is doing only the runtime that holds it knows; of that, nothing is read here.

    Args:
        root: Of the file system that holds ``sys`` and ``dev``.
    """

    kind = "tpu"

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._chips: tuple[Chip, ...] = ()

    def inventory(self) -> Inventory:
        """Find the chips, or say that there are none."""
        self._chips = find_chips(self._root)
        absences = () if self._chips else (Absence("tpu", "no TPU chip on the PCI bus"),)
        return Inventory(tuple(chip.device for chip in self._chips), absences)

    def sample(self) -> tuple[Sample, ...]:
        """Tell each chip's memory, and why nothing else is known."""
        return tuple(Sample(time.time(), chip.device.id, _read(chip)) for chip in self._chips)

    def close(self) -> None:
        """Nothing is held open."""


def find_chips(root: Path = Path("/")) -> tuple[Chip, ...]:
    """Find the TPU chips of this machine, in the order of their PCI bus ids.

    Args:
        root: Of the file system that holds ``sys`` and ``dev``.
    """
    try:
        functions = sorted((root / "sys/bus/pci/devices").iterdir())
    except OSError:
        return ()
    chips: list[Chip] = []
    for function in functions:
        generation = _generation(function)
        if generation is None:
            continue
        index = len(chips)
        device = Device(
            id=f"tpu:{index}",
            kind="tpu",
            name=generation.name,
            memory=generation.gibibytes * 2**30,
            cores=generation.cores,
            address=normalise(function.name),
        )
        node = _vfio_node(root, function) if generation.vfio else root / f"dev/accel{index}"
        chips.append(Chip(device, node))
    return tuple(chips)


def _generation(function: Path) -> Generation | None:
    if _word(function / "vendor") != GOOGLE:
        return None
    device = _word(function / "device")
    return GENERATIONS.get((device, "")) or GENERATIONS.get((device, _word(function / "subsystem_device")))


def _word(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip().lower()
    except OSError:
        return ""


def _vfio_node(root: Path, function: Path) -> Path | None:
    """The device file of the IOMMU group that a PCI function is in."""
    try:
        return root / "dev/vfio" / (function / "iommu_group").readlink().name
    except OSError:
        return None


def _read(chip: Chip) -> dict[str, Reading]:
    reason = _UNREAD if chip.node is not None and chip.node.exists() else _unusable(chip.node)
    return {
        "utilization": Reading.missing(reason, "%"),
        "memory_used": Reading.missing(reason, "B"),
        "memory_total": Reading(chip.device.memory, "B"),
    }


def _unusable(node: Path | None) -> str:
    if node is None:
        return "the kernel gives programs no way to the chip (it is in no IOMMU group)"
    return f"{node} is not there: the chip has no driver, or was not handed to this container"
