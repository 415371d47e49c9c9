"""PCI bus ids in every form that is met."""

import pytest

from accel_engine.devices import Device, Inventory, find_by_address
from accel_engine.devices.pci_address import normalize_bus_id


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("00000000:3B:00.0", "0000:3b:00.0"),  # NVML
        ("0000:3b:00.0", "0000:3b:00.0"),  # the kernel
        ("0000:3B:00.0\n", "0000:3b:00.0"),
        ("3b:00.0", "0000:3b:00.0"),  # lspci
        ("0001:00:1e.7", "0001:00:1e.7"),
        ("00010000:01:00.0", "10000:01:00.0"),  # behind a volume management device
    ],
)
def test_one_spelling(written: str, meant: str) -> None:
    assert normalize_bus_id(written) == meant


@pytest.mark.parametrize("text", ["", "cpu", "0000:3b:00", "0000:3b:00.8", "3b.00.0", "0000:xy:00.0"])
def test_what_is_no_bus_id_has_no_spelling(text: str) -> None:
    assert normalize_bus_id(text) == ""


def test_a_device_is_found_however_its_address_is_written() -> None:
    cpu = Device("cpu:0", "cpu", "a CPU")
    gpu = Device("gpu:0", "gpu", "a GPU", address="0000:3b:00.0")
    inventory = Inventory((cpu, gpu))
    assert find_by_address(inventory, "00000000:3B:00.0") is gpu
    assert find_by_address(inventory, "3b:00.0") is gpu
    assert find_by_address(inventory, "0000:3c:00.0") is None


def test_no_address_finds_no_device_without_one() -> None:
    inventory = Inventory((Device("cpu:0", "cpu", "a CPU"),))
    assert find_by_address(inventory, "") is None
