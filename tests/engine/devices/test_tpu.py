"""TPU chips, against a stand-in for what the kernel shows of them."""

from pathlib import Path

import pytest

from accel_engine.devices.tpu import GENERATIONS, GOOGLE, Generation, TpuProbe, find_chips


def add(
    root: Path, address: str, device: str, subsystem: str = "0x0000", vendor: str = GOOGLE, group: int | None = None
) -> None:
    """Put a function on the PCI bus, in an IOMMU group if one is given."""
    function = root / "sys/bus/pci/devices" / address
    function.mkdir(parents=True)
    (function / "vendor").write_text(f"{vendor}\n")
    (function / "device").write_text(f"{device}\n")
    (function / "subsystem_device").write_text(f"{subsystem}\n")
    if group is not None:
        groups = root / "sys/kernel/iommu_groups" / str(group)
        groups.mkdir(parents=True)
        (function / "iommu_group").symlink_to(groups)


def node(root: Path, name: str) -> None:
    path = root / "dev" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def test_a_machine_without_pci_has_no_tpu(tmp_path: Path) -> None:
    probe = TpuProbe(tmp_path)
    inventory = probe.inventory()
    assert inventory.devices == ()
    assert [(absence.kind, absence.reason) for absence in inventory.absences] == [("tpu", "no TPU chip on the PCI bus")]
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
    assert [chip.node for chip in find_chips(tmp_path)] == [tmp_path / f"dev/accel{index}" for index in range(4)]


def test_newer_chips_are_used_through_their_iommu_group(tmp_path: Path) -> None:
    add(tmp_path, "0000:00:04.0", "0x0063", group=7)
    add(tmp_path, "0000:00:05.0", "0x006f", group=12)
    assert [chip.node for chip in find_chips(tmp_path)] == [tmp_path / "dev/vfio/7", tmp_path / "dev/vfio/12"]


def test_readings_have_their_reason(tmp_path: Path) -> None:
    add(tmp_path, "0000:00:04.0", "0x005e")  # there, and handed to this container
    node(tmp_path, "accel0")
    add(tmp_path, "0000:00:05.0", "0x005e")  # there, but not handed over
    add(tmp_path, "0000:00:06.0", "0x0063")  # there, without a way to it
    probe = TpuProbe(tmp_path)
    probe.inventory()
    samples = probe.sample()
    probe.close()
    assert [sample.device for sample in samples] == ["tpu:0", "tpu:1", "tpu:2"]
    for sample, reason in zip(samples, ("program that holds the chip", "accel1 is not there", "IOMMU"), strict=True):
        assert sample.readings["utilization"].value is None
        assert reason in sample.readings["utilization"].reason
        assert reason in sample.readings["memory_used"].reason
    assert samples[0].readings["memory_total"].value == 32 * 2**30
