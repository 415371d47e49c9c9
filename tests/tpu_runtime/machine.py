"""Fakes the kernel's files of TPU chips, and of the processes that hold them."""

from pathlib import Path

from accel_engine.devices.tpu_chips import GOOGLE


def add(
    root: Path, address: str, device: str, subsystem: str = "0x0000", vendor: str = GOOGLE, group: int | None = None
) -> None:
    """Add a function to the PCI bus, optionally in an IOMMU group."""
    function = root / "sys/bus/pci/devices" / address
    function.mkdir(parents=True)
    (function / "vendor").write_text(f"{vendor}\n")
    (function / "device").write_text(f"{device}\n")
    (function / "subsystem_device").write_text(f"{subsystem}\n")
    if group is not None:
        groups = root / "sys/kernel/iommu_groups" / str(group)
        groups.mkdir(parents=True)
        (function / "iommu_group").symlink_to(groups)


def hold(root: Path, process: int, name: str, *nodes: str) -> None:
    """Add a process that has device files open."""
    files = root / "proc" / str(process) / "fd"
    files.mkdir(parents=True)
    (files.parent / "comm").write_text(f"{name}\n")
    for number, opened in enumerate(nodes):
        (files / str(number)).symlink_to(root / "dev" / opened)


def node(root: Path, name: str) -> None:
    path = root / "dev" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
