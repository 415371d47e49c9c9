"""PCI bus ids: one spelling for what drivers, the kernel and TensorFlow each spell their own way."""

import re

from accel_engine.devices.reading import Device, Inventory

_BUS_ID = re.compile(r"(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})\.([0-7])")


def normalise(address: str) -> str:
    """Spell a PCI bus id as the kernel does: ``00000000:3B:00.0`` becomes ``0000:3b:00.0``.

    Returns:
        The address in lower case, with a domain of four digits or as many as it takes; nothing
        when the text is no PCI bus id.
    """
    match = _BUS_ID.fullmatch(address.strip().lower())
    if match is None:
        return ""
    domain, bus, device, function = (int(part or "0", 16) for part in match.groups())
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function}"


def find_by_address(inventory: Inventory, address: str) -> Device | None:
    """Find the device at a PCI bus id, in whatever form that is written."""
    wanted = normalise(address)
    if not wanted:
        return None
    return next((device for device in inventory.devices if normalise(device.address) == wanted), None)
