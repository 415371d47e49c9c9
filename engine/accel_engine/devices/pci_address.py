"""Compares PCI bus ids, which drivers, the kernel and TensorFlow format differently, and GPUs' architectures."""

import re
from collections.abc import Iterable
from pathlib import Path

from accel_engine.devices.device_types import Device, Inventory

_BUS_ID = re.compile(r"(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})\.([0-7])")


def normalize_bus_id(address: str) -> str:
    """Format a PCI bus id as the kernel does: ``00000000:3B:00.0`` becomes ``0000:3b:00.0``.

    Returns:
        The address in lower case, with a domain of at least four digits; empty if the text is not a PCI bus id.
    """
    match = _BUS_ID.fullmatch(address.strip().lower())
    if match is None:
        return ""
    domain, bus, device, function = (int(part or "0", 16) for part in match.groups())
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function}"


def find_by_address(inventory: Inventory, address: str) -> Device | None:
    """Find the device at a PCI bus id in any format."""
    wanted = normalize_bus_id(address)
    if not wanted:
        return None
    return next((device for device in inventory.devices if normalize_bus_id(device.address) == wanted), None)


def read_word(path: Path) -> str:
    """Read a file of ``/sys`` or ``/proc``; empty if it cannot be read."""
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def newest_major(built: Iterable[str]) -> int | None:
    """The newest generation for which a build has code: 9 for ``sm_80`` and ``compute_90``; ``None`` if unknown."""
    digits = [re.sub(r"\D", "", each) for each in built]
    return max((int(each[:-1]) for each in digits if len(each) > 1), default=None)


def is_newer(capability: str, built: Iterable[str]) -> bool:
    """Whether a GPU is of a newer generation than a build has code for. CUDA code runs on its own generation only.

    TensorFlow's kernels may be compiled for it, which takes up to half an hour, but XLA aborts the process
    (TensorFlow's issues 89272, 111958).

    Args:
        capability: The GPU's compute capability, such as ``12.0``; empty if unknown.
        built: The capabilities of the build, as its build info has them: ``sm_80``, ``compute_90``.
    """
    newest = newest_major(built)
    return bool(capability) and newest is not None and int(capability.partition(".")[0]) > newest
