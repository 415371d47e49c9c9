"""Finds Google's TPU chips, and the processes that hold them, through the kernel alone."""

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from accel_engine.devices.device_types import CountedItem, Device
from accel_engine.devices.pci_address import normalize_bus_id, read_word

GOOGLE = "0x1ae0"
"""Google's PCI vendor id."""


@dataclass(frozen=True, slots=True)
class Generation:
    """A generation of TPU chips."""

    name: str
    """Google's name."""
    gibibytes: int
    """Memory per chip."""
    cores: int
    """TensorCores per chip."""
    runtime_device_count: int
    """Runtime devices per chip; two cores may form one device."""
    vfio: bool = True
    """Whether it is driven from user space (``/dev/vfio/GROUP``), not by a kernel driver (``/dev/accelN``)."""
    split: bool = False
    """Whether each of its devices is a separate PCI function."""


GENERATIONS: dict[tuple[str, str], Generation] = {
    ("0x0027", "0x004e"): Generation("TPU v2", 16, 2, 2, vfio=False),
    ("0x0027", "0x004f"): Generation("TPU v3", 32, 2, 2, vfio=False),
    ("0x005e", ""): Generation("TPU v4", 32, 2, 1, vfio=False),
    ("0x0063", ""): Generation("TPU v5e", 16, 1, 1),
    ("0x0062", ""): Generation("TPU v5p", 95, 2, 1),
    ("0x006f", ""): Generation("TPU v6e", 32, 1, 1),
    ("0x0076", ""): Generation("TPU 7x", 192, 2, 2, split=True),
}
"""Generations by PCI device id, and by subsystem device id if two generations share a device id.

Ids, devices and functions are from Google's ``tpu-info`` (which has the memory of v2 and v3 per device, not per
chip); memory and cores per chip are from the Cloud TPU documentation of each generation.
"""


@dataclass(frozen=True, slots=True)
class Chip:
    """A TPU chip of this machine."""

    device: Device
    """Its device in the inventory."""
    nodes: tuple[Path, ...]
    """Its device files; empty if the kernel has none."""
    runtime_device_count: int
    """Number of runtime devices."""


@dataclass(frozen=True, slots=True)
class Holders:
    """The processes that have device files of chips open."""

    by_node: Mapping[str, tuple[CountedItem, ...]]
    """The processes by device file."""
    complete: bool
    """Whether all processes could be inspected; other users' may be inaccessible."""

    def of(self, chip: Chip) -> tuple[CountedItem, ...]:
        """The processes that hold a chip, each once."""
        return tuple(dict.fromkeys(holder for node in chip.nodes for holder in self.by_node.get(str(node), ())))


def find_chips(root: Path = Path("/")) -> tuple[Chip, ...]:
    """Find the TPU chips of this machine, in the order of their PCI bus ids.

    Args:
        root: Parent directory of ``sys`` and ``dev``.
    """
    try:
        functions = sorted((root / "sys/bus/pci/devices").iterdir())
    except OSError:
        return ()
    functions_by_slot: dict[str, tuple[Generation, list[Path]]] = {}
    for function in functions:
        if generation := _generation(function):
            slot = function.name.partition(".")[0] if generation.split else function.name
            functions_by_slot.setdefault(slot, (generation, []))[1].append(function)
    return tuple(_chip(root, index, *chip) for index, chip in enumerate(functions_by_slot.values()))


def runtime_devices(chip: Device) -> int:
    """Number of runtime devices of a chip in the inventory; each has one replica."""
    return next((known.runtime_device_count for known in GENERATIONS.values() if known.name == chip.name), 1)


def find_holders(root: Path = Path("/")) -> Holders:
    """Find the processes that hold chips, by their open files.

    Args:
        root: Parent directory of ``proc``.
    """
    by_node: dict[str, tuple[CountedItem, ...]] = {}
    complete = True
    for process in _processes(root / "proc"):
        try:
            links = _open_files(process / "fd")
        except PermissionError:
            complete = False
            continue
        except OSError:  # it has exited in the meantime
            continue
        for node in links:
            if node.startswith((f"{root / 'dev/accel'}", f"{root / 'dev/vfio'}/")):
                holder = CountedItem(read_word(process / "comm") or "a program", process.name)
                by_node[node] = (*by_node.get(node, ()), holder)
    return Holders(by_node, complete)


def _open_files(descriptors: Path) -> set[str]:
    files = set()
    for number in os.listdir(descriptors):
        with contextlib.suppress(FileNotFoundError):  # closed in the meantime
            files.add(os.readlink(descriptors / number))
    return files


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
        address=normalize_bus_id(functions[0].name),
    )
    nodes = _vfio_nodes(root, functions) if generation.vfio else (root / f"dev/accel{index}",)
    return Chip(device, nodes, generation.runtime_device_count)


def _generation(function: Path) -> Generation | None:
    if read_word(function / "vendor").lower() != GOOGLE:
        return None
    device = read_word(function / "device").lower()
    return GENERATIONS.get((device, "")) or GENERATIONS.get((device, read_word(function / "subsystem_device").lower()))


def _vfio_nodes(root: Path, functions: list[Path]) -> tuple[Path, ...]:
    """The device files of the IOMMU groups of PCI functions."""
    groups: list[str] = []
    for function in functions:
        try:
            groups.append((function / "iommu_group").readlink().name)
        except OSError:
            continue
    return tuple(root / "dev/vfio" / group for group in groups)
