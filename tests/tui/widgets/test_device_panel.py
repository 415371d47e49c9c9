import pytest

from accel_engine.devices.reading import Absence, Device, Inventory, Reading, Sample
from accel_tui.meter import Meter
from accel_tui.widgets.device_panel import lines
from tui.stand_ins import GIB, MACHINE, READINGS, sample

GPU = Device("gpu:0", "gpu", "NVIDIA H100 80GB HBM3", 80 * GIB)
GPU_READINGS = {
    "utilization": Reading(97.0, "%"),
    "memory_used": Reading(61.5 * GIB, "B"),
    "memory_total": Reading(80.0 * GIB, "B"),
    "temperature": Reading(64.0, "C"),
    "power": Reading(512.3, "W"),
}


def plain(inventory: Inventory | None, meters: dict[str, Meter], width: int) -> list[str]:
    return [line.plain for line in lines(inventory, meters, width)]


def test_while_devices_are_looked_for_that_is_said() -> None:
    assert plain(None, {}, 80) == ["looking for devices…"]


def test_a_device_is_a_line_and_absences_share_one() -> None:
    shown = plain(MACHINE, {"cpu:0": Meter(sample(), (10.0, 100.0))}, 80)
    assert shown[0].startswith("cpu:0  AMD EPYC 7B13  ━━━━━━━━  43%  mem 3.1G/16.0G")
    assert "load 1.2" in shown[0]
    assert shown[0].endswith("▂█")
    assert shown[1:] == ["gpu  none: no NVIDIA driver   tpu  none: no TPU chip"]


def test_absences_that_are_long_have_a_line_each() -> None:
    inventory = Inventory((), (Absence("gpu", "x" * 50), Absence("tpu", "y" * 50)))
    assert len(plain(inventory, {}, 80)) == 2


def test_temperature_and_power_stand_where_they_are_read() -> None:
    shown = plain(Inventory((GPU,)), {"gpu:0": Meter(Sample(0.0, "gpu:0", GPU_READINGS), (97.0,))}, 120)
    assert "61.5G/80.0G" in shown[0]
    assert "64°C" in shown[0]
    assert "512W" in shown[0]


def test_what_could_not_be_read_is_a_dash_with_its_reason() -> None:
    readings = READINGS | {"utilization": Reading.missing("the driver does not say", "%")}
    shown = plain(MACHINE, {"cpu:0": Meter(sample(readings=readings), (None,))}, 120)
    assert " —  mem" in shown[0]
    assert "the driver does not say" in shown[0]
    assert "0%" not in shown[0]


def test_a_device_that_was_not_read_yet_says_so() -> None:
    assert plain(MACHINE, {}, 80)[0].endswith("reading…")


@pytest.mark.parametrize("width", [1, 20, 60, 80, 120, 200, 300])
def test_no_line_is_wider_than_the_panel(width: int) -> None:
    inventory = Inventory((*MACHINE.devices, GPU), MACHINE.absences)
    meters = {"cpu:0": Meter(sample(), (50.0,) * 120), "gpu:0": Meter(Sample(0.0, "gpu:0", GPU_READINGS), (9.0,) * 120)}
    assert all(line.cell_length <= width for line in lines(inventory, meters, width))


def test_cores_are_drawn_where_there_is_room() -> None:
    meters = {"cpu:0": Meter(sample(), (50.0,) * 120)}
    assert "▁▃▅▆" in plain(MACHINE, meters, 120)[0]
    assert "▁▃▅▆" not in plain(MACHINE, meters, 80)[0]
