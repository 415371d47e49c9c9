"""Which accelerators are in use, as measured."""

import pytest

from accel_engine.devices.device_types import CountedItem, Device, Inventory, Reading, Sample
from accel_engine.run_queue.machine import MachineReader, why_in_use

GB = 10**9
JOB = Reading.counted((CountedItem("python", "123"), CountedItem("python", "124")))


@pytest.mark.parametrize(
    ("device", "readings", "reason"),
    [
        ("gpu:0", {"memory_used": Reading(1.0 * GB), "memory_total": Reading(80.0 * GB)}, ""),
        (
            "gpu:0",
            {"memory_used": Reading(30.0 * GB), "memory_total": Reading(80.0 * GB)},
            "has 30.0 of 80.0 GB in use",
        ),
        (
            "gpu:0",
            {"memory_used": Reading(30.0 * GB), "memory_total": Reading(80.0 * GB), "processes": JOB},
            "has 30.0 of 80.0 GB in use (python, python)",
        ),
        ("gpu:0", {"memory_used": Reading(0.0), "utilization": Reading(9.0)}, ""),
        ("gpu:0", {"memory_used": Reading(0.0), "utilization": Reading(55.0)}, "is 55% busy"),
        ("gpu:0", {"memory_used": Reading.missing("not supported"), "utilization": Reading.missing("no")}, ""),
        ("gpu:0", {"utilization": Reading.missing("the driver is silent")}, "cannot be read: the driver is silent"),
        ("tpu:0", {"memory_used": Reading.missing("no metrics"), "processes": Reading.counted(())}, ""),
        ("tpu:0", {"memory_used": Reading(0.0), "processes": JOB}, "is held by another program (python, python)"),
        ("gpu:0", {"memory_used": Reading(0.1 * GB), "memory_total": Reading(80.0 * GB), "processes": JOB}, ""),
    ],
)
def test_who_uses_an_accelerator(device: str, readings: dict[str, Reading], reason: str) -> None:
    assert why_in_use(Sample(0.0, device, readings)) == reason


class StubProbe:
    kind = "gpu"
    closed = False

    def inventory(self) -> Inventory:
        return Inventory((Device("gpu:0", "gpu", "a GPU"), Device("gpu:1", "gpu", "a GPU")))

    def sample(self) -> tuple[Sample, ...]:
        return (
            Sample(0.0, "gpu:0", {"memory_used": Reading(0.0), "utilization": Reading(100.0)}),
            Sample(0.0, "gpu:1", {"memory_used": Reading(0.0), "utilization": Reading(0.0)}),
        )

    def close(self) -> None:
        self.closed = True


def test_all_accelerators_are_read() -> None:
    probe = StubProbe()
    with MachineReader([probe]) as machine:
        assert [device.id for device in machine.devices] == ["gpu:0", "gpu:1"]
        assert machine.in_use() == {"gpu:0": "is 100% busy", "gpu:1": ""}
    assert probe.closed
