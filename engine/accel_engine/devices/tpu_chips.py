"""Google's TPU chips and the programs that hold them, as the kernel shows them, without any library."""

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from accel_engine.devices.pci_address import normalise
from accel_engine.devices.reading import CountedItem, Device

GOOGLE = "0x1ae0"
"""Google's PCI vendor id."""


@dataclass(frozen=True, slots=True)
class Generation:
    """A kind of TPU chip.

    Attributes:
        name: What Google calls it.
        gibibytes: Memory of a chip.
        cores: TensorCores of a chip.
        devices: Devices that the TPU runtime makes of a chip; two cores may work as one.
        vfio: Whether it is driven from user space (``/dev/vfio/GROUP``), not by a driver of its own
            (``/dev/accelN``).
        split: Whether each of its devices is a function of its own on the PCI bus.
    """

    name: str
    gibibytes: int
    cores: int
    devices: int
    vfio: bool = True
    split: bool = False


GENERATIONS: dict[tuple[str, str], Generation] = {
    ("0x0027", "0x004e"): Generation("TPU v2", 16, 2, 2, vfio=False),
    ("0x0027", "0x004f"): Generation("TPU v3", 32, 2, 2, vfio=False),
    ("0x005e", ""): Generation("TPU v4", 32, 2, 1, vfio=False),
    ("0x0063", ""): Generation("TPU v5e", 16, 1, 1),
    ("0x0062", ""): Generation("TPU v5p", 95, 2, 1),
    ("0x006f", ""): Generation("TPU v6e", 32, 1, 1),
    ("0x0076", ""): Generation("TPU 7x", 192, 2, 2, split=True),
}
"""Chips by PCI device id, and by subsystem device id where one device id serves two generations.

Ids, devices and functions are those that Google's ``tpu-info`` knows (which gives the memory of v2 and
v3 by device, not by chip); memory and cores are a chip's, from the Cloud TPU documentation's page of
each generation.
"""


@dataclass(frozen=True, slots=True)
class Chip:
    """A TPU chip of this machine.

    Attributes:
        device: As the inventory has it.
        nodes: The files through which programs use it; none when the kernel names none.
        devices: Devices that the TPU runtime makes of it.
    """

    device: Device
    nodes: tuple[Path, ...]
    devices: int


@dataclass(frozen=True, slots=True)
class Holders:
    """The programs that have opened files of chips.

    Attributes:
        by_node: The programs by the file.
        complete: Whether there can be no others: some may be hidden from this user.
    """

    by_node: Mapping[str, tuple[CountedItem, ...]]
    complete: bool

    def of(self, chip: Chip) -> tuple[CountedItem, ...]:
        """The programs that hold a chip, each once."""
        return tuple(dict.fromkeys(part for node in chip.nodes for part in self.by_node.get(str(node), ())))


def find_chips(root: Path = Path("/")) -> tuple[Chip, ...]:
    """Find the TPU chips of this machine, in the order of their PCI bus ids.

    Args:
        root: Of the file system that holds ``sys`` and ``dev``.
    """
    try:
        functions = sorted((root / "sys/bus/pci/devices").iterdir())
    except OSError:
        return ()
    found: dict[str, tuple[Generation, list[Path]]] = {}
    for function in functions:
        if generation := _generation(function):
            slot = function.name.partition(".")[0] if generation.split else function.name
            found.setdefault(slot, (generation, []))[1].append(function)
    return tuple(_chip(root, index, *chip) for index, chip in enumerate(found.values()))


def runtime_devices(chip: Device) -> int:
    """How many devices the TPU runtime makes of a chip of the inventory; each holds one replica."""
    return next((known.devices for known in GENERATIONS.values() if known.name == chip.name), 1)


def find_holders(root: Path = Path("/")) -> Holders:
    """Find the programs that hold chips, by the files that they have open.

    Args:
        root: Of the file system that holds ``proc``.
    """
    by_node: dict[str, tuple[CountedItem, ...]] = {}
    complete = True
    for process in _processes(root / "proc"):
        try:
            links = _opened(process / "fd")
        except PermissionError:
            complete = False
            continue
        except OSError:  # it has ended meanwhile
            continue
        for node in links:
            if node.startswith((f"{root / 'dev/accel'}", f"{root / 'dev/vfio'}/")):
                part = CountedItem(_word(process / "comm") or "a program", process.name)
                by_node[node] = (*by_node.get(node, ()), part)
    return Holders(by_node, complete)


def _opened(files: Path) -> set[str]:
    """What a program has open."""
    opened = set()
    for number in os.listdir(files):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            opened.add(os.readlink(files / number))
    return opened


def _processes(proc: Path) -> list[Path]:
    try:
        return [proc / name for name in os.listdir(proc) if name.isdecimal()]
    except OSError:
        return []


def _chip(root: Path, index: int, generation: Generation, functions: list[Path]) -> Chip:
    device = Device(
        id=f"tpu:{index}",
        kind="tpu",
        name=generation.name,
        memory=generation.gibibytes * 2**30,
        cores=generation.cores,
        address=normalise(functions[0].name),
    )
    nodes = _vfio_nodes(root, functions) if generation.vfio else (root / f"dev/accel{index}",)
    return Chip(device, nodes, generation.devices)


def _generation(function: Path) -> Generation | None:
    if _word(function / "vendor").lower() != GOOGLE:
        return None
    device = _word(function / "device").lower()
    return GENERATIONS.get((device, "")) or GENERATIONS.get((device, _word(function / "subsystem_device").lower()))


def _word(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _vfio_nodes(root: Path, functions: list[Path]) -> tuple[Path, ...]:
    """The device files of the IOMMU groups that PCI functions are in."""
    groups: list[str] = []
    for function in functions:
        try:
            groups.append((function / "iommu_group").readlink().name)
        except OSError:
            continue
    return tuple(root / "dev/vfio" / group for group in groups)
