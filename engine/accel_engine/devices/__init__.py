"""Finds the devices of this machine and reads their metrics, without TensorFlow."""

from accel_engine.devices.device_types import Device, Inventory, Reading, Sample, UnavailableKind
from accel_engine.devices.pci_address import find_by_address
from accel_engine.devices.sampler import Sampler

__all__ = ["Device", "Inventory", "Reading", "Sample", "Sampler", "UnavailableKind", "detect", "find_by_address"]


def detect() -> Inventory:
    """Find the devices of this machine once; this may take about 100 ms."""
    sampler = Sampler(on_samples=lambda _: None)
    try:
        return sampler.inventory
    finally:
        sampler.stop()
