"""TPU chips, against a stand-in for what the kernel shows of them."""

import os
from pathlib import Path

import pytest

from accel_engine.devices.device_types import CountedItem
from accel_engine.devices.tpu_chips import GENERATIONS, Generation, find_chips, find_holders
from accel_engine.devices.tpu_probe import TpuProbe
from tpu_runtime.machine import add, hold, node


def test_a_machine_without_pci_has_no_tpu(tmp_path: Path) -> None:
    probe = TpuProbe(tmp_path)
    inventory = probe.inventory()
    assert inventory.devices == ()
    assert [(absence.kind, absence.reason) for absence in inventory.unavailable] == [
        ("tpu", "no TPU chip on the PCI bus")
    ]
    assert probe.sample() == ()


def test_other_functions_on_the_bus_are_no_tpu(tmp_path: Path) -> None:
    add(tmp_path, "0000:00:03.0", "0x005e", vendor="0x8086")
    add(tmp_path, "0000:00:04.0", "0x0042")  # Google's network card
    (tmp_path / "sys/bus/pci/devices/0000:00:05.0").mkdir()  # one that tells nothing
    assert find_chips(tmp_path) == ()


@pytest.mark.parametrize(("ids", "generation"), GENERATIONS.items())
def test_every_generation_is_known(ids: tuple[str, str], generation: Generation, tmp_path: Path) -> None:
    device, subsystem = ids
    add(tmp_path, "0000:00:05.0", device, subsystem or "0x1234")
    (chip,) = find_chips(tmp_path)
    assert chip.device.name == generation.name
    assert chip.device.memory == generation.gibibytes * 2**30
    assert chip.device.cores == generation.cores


def test_v2_and_v3_are_told_apart_by_their_subsystem(tmp_path: Path) -> None:
    add(tmp_path, "0000:00:04.0", "0x0027", "0x004e")
    add(tmp_path, "0000:00:05.0", "0x0027", "0x004f")
    add(tmp_path, "0000:00:06.0", "0x0027", "0x0099")
    assert [chip.device.name for chip in find_chips(tmp_path)] == ["TPU v2", "TPU v3"]


def test_chips_are_numbered_in_the_order_of_the_bus(tmp_path: Path) -> None:
    for address in ("0000:00:07.0", "0000:00:04.0", "0000:00:06.0", "0000:00:05.0"):
        add(tmp_path, address, "0x005e")
    devices = TpuProbe(tmp_path).inventory().devices
    assert [(device.id, device.address) for device in devices] == [
        (f"tpu:{index}", f"0000:00:0{4 + index}.0") for index in range(4)
    ]
    assert [chip.nodes for chip in find_chips(tmp_path)] == [(tmp_path / f"dev/accel{index}",) for index in range(4)]


def test_newer_chips_are_used_through_their_iommu_group(tmp_path: Path) -> None:
    add(tmp_path, "0000:00:04.0", "0x0063", group=7)
    add(tmp_path, "0000:00:05.0", "0x006f", group=12)
    assert [chip.nodes for chip in find_chips(tmp_path)] == [(tmp_path / "dev/vfio/7",), (tmp_path / "dev/vfio/12",)]


def test_a_chip_of_two_functions_is_one_chip(tmp_path: Path) -> None:
    for slot in (4, 5):
        for function in (0, 1):
            add(tmp_path, f"0000:00:0{slot}.{function}", "0x0076", group=2 * slot + function)
    chips = find_chips(tmp_path)
    assert [chip.device.address for chip in chips] == ["0000:00:04.0", "0000:00:05.0"]
    assert chips[1].nodes == (tmp_path / "dev/vfio/10", tmp_path / "dev/vfio/11")


def test_the_programs_that_hold_chips_are_found(tmp_path: Path) -> None:
    for index in range(3):
        add(tmp_path, f"0000:00:0{4 + index}.0", "0x005e")
        node(tmp_path, f"accel{index}")
    hold(tmp_path, 71, "python3", "accel0", "accel1", "null")
    hold(tmp_path, 8, "sh", "null")
    (tmp_path / "proc/meminfo").touch()
    (tmp_path / "proc/9").mkdir()  # one that has just ended
    holders = find_holders(tmp_path)
    assert holders.complete
    python = CountedItem("python3", "71")
    assert [holders.of(chip) for chip in find_chips(tmp_path)] == [(python,), (python,), ()]


def test_a_file_that_is_closed_meanwhile_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(tmp_path, "0000:00:04.0", "0x005e")
    hold(tmp_path, 71, "python3", "null", "accel0")
    listed = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: ["7", *listed(path)])
    (chip,) = find_chips(tmp_path)
    assert find_holders(tmp_path).of(chip) == (CountedItem("python3", "71"),)


def test_a_program_that_holds_both_functions_of_a_chip_is_told_once(tmp_path: Path) -> None:
    for function in (0, 1):
        add(tmp_path, f"0000:00:04.{function}", "0x0076", group=function)
    hold(tmp_path, 71, "python3", "vfio/0", "vfio/1", "vfio/vfio")
    (chip,) = find_chips(tmp_path)
    assert find_holders(tmp_path).of(chip) == (CountedItem("python3", "71"),)


def test_what_is_not_usable_says_why(tmp_path: Path, silent_port: int) -> None:
    add(tmp_path, "0000:00:05.0", "0x005e")  # there, but not handed over
    add(tmp_path, "0000:00:06.0", "0x0063")  # there, without a way to it
    probe = TpuProbe(tmp_path, str(silent_port))
    probe.inventory()
    samples = probe.sample()
    probe.close()
    assert [sample.device for sample in samples] == ["tpu:0", "tpu:1"]
    for sample, reason in zip(samples, ("accel0 does not exist", "IOMMU"), strict=True):
        assert sample.readings["utilization"].value is None
        assert reason in sample.readings["utilization"].reason
        assert reason in sample.readings["memory_used"].reason
    assert samples[0].readings["memory_total"].value == 32 * 2**30
