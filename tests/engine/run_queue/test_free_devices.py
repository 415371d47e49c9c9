"""Which accelerators are in use, as measured."""

import os
from collections.abc import Iterator
from types import SimpleNamespace

import psutil
import pytest

from accel_engine.devices.device_types import ASLEEP, CountedItem, Device, Inventory, Reading, Sample
from accel_engine.run_queue.free_devices import IDLE_SECONDS, MachineReader, why_in_use

GIB = 1 << 30
JOB = Reading.counted((CountedItem("python", "?", computes=True), CountedItem("python", "?", computes=True)))
DESKTOP = Reading.counted((CountedItem("Xorg", "?"),))


@pytest.mark.parametrize(
    ("device", "readings", "reason"),
    [
        ("gpu:0", {"memory_used": Reading(1.0 * GIB), "memory_total": Reading(80.0 * GIB)}, ""),
        (
            "gpu:0",
            {"memory_used": Reading(30.0 * GIB), "memory_total": Reading(80.0 * GIB)},
            "has 30.0 GiB of 80.0 GiB in use",
        ),
        (
            "gpu:0",
            {"memory_used": Reading(30.0 * GIB), "memory_total": Reading(80.0 * GIB), "processes": JOB},
            "has 30.0 GiB of 80.0 GiB in use (python, python)",
        ),
        ("gpu:0", {"memory_used": Reading(0.0), "utilization": Reading(9.0)}, ""),
        ("gpu:0", {"memory_used": Reading(0.0), "utilization": Reading(55.0)}, "is 55% busy"),
        (
            "gpu:0",
            {"memory_used": Reading.missing("lost"), "utilization": Reading.missing("lost")},
            "cannot be read: lost",
        ),
        ("gpu:0", {"memory_used": Reading.missing(ASLEEP), "utilization": Reading.missing(ASLEEP)}, ""),
        ("gpu:0", {"memory_used": Reading.missing("shared"), "utilization": Reading(0.0)}, ""),
        ("gpu:0", {"utilization": Reading.missing("the driver is silent")}, "cannot be read: the driver is silent"),
        ("tpu:0", {"memory_used": Reading.missing("no metrics"), "processes": Reading.counted(())}, ""),
        ("tpu:0", {"memory_used": Reading(0.0), "processes": JOB}, "is used by another program (python, python)"),
        (
            "gpu:0",  # an idle notebook
            {"memory_used": Reading(0.5 * GIB), "memory_total": Reading(80.0 * GIB), "processes": JOB},
            "is used by another program (python, python)",
        ),
        (
            "gpu:0",  # the card of a desktop
            {"memory_used": Reading(0.95 * GIB), "memory_total": Reading(8.0 * GIB), "processes": DESKTOP},
            "",
        ),
    ],
)
def test_who_uses_an_accelerator(device: str, readings: dict[str, Reading], reason: str) -> None:
    assert why_in_use(Sample(0.0, device, readings)) == reason


@pytest.mark.parametrize(
    ("options", "user", "reason"),
    [
        (["--run", "/runs/one"], 0, ""),  # the queue knows it
        ([], 0, ""),  # it waits for a plan
        (["--request", "bench_models"], 0, "is used by another program (python)"),
        (["--run", "/runs/one"], 1, "is used by another program (python)"),
    ],
)
def test_engines_that_the_queue_knows_are_nobody_else(
    monkeypatch: pytest.MonkeyPatch, options: list[str], user: int, reason: str
) -> None:
    engine = SimpleNamespace(
        cmdline=lambda: ["python", "-m", "accel_engine.process", *options],
        uids=lambda: SimpleNamespace(real=os.getuid() + user),
    )
    monkeypatch.setattr(psutil, "Process", lambda pid: {4242: engine}[pid])
    running = Reading.counted((CountedItem("python", "4242", computes=True),))
    assert why_in_use(Sample(0.0, "gpu:0", {"memory_used": Reading(0.5 * GIB), "processes": running})) == reason


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class StubProbe:
    kind = "gpu"
    closed = False
    busy: Iterator[float] = iter(())

    def inventory(self) -> Inventory:
        return Inventory(
            (
                Device("gpu:0", "gpu", "a GPU"),
                Device("gpu:1", "gpu", "a GPU"),
                Device("gpu:2", "gpu", "a GPU", problem="lost"),
                Device("gpu:3", "gpu", "a GPU"),
            )
        )

    def sample(self) -> tuple[Sample, ...]:
        return (
            Sample(0.0, "gpu:0", {"memory_used": Reading(0.0), "utilization": Reading(100.0)}),
            Sample(0.0, "gpu:1", {"memory_used": Reading(0.0), "utilization": Reading(next(self.busy))}),
            Sample(0.0, "gpu:2", {"memory_used": Reading(0.0)}),
        )

    def close(self) -> None:
        self.closed = True


def test_all_accelerators_are_read() -> None:
    probe, clock = StubProbe(), Clock()
    probe.busy = iter([0.0, 0.0])
    with MachineReader([probe], clock) as machine:
        assert [device.id for device in machine.devices] == ["gpu:0", "gpu:1", "gpu:2", "gpu:3"]
        machine.in_use()
        clock.now = IDLE_SECONDS
        others = {"gpu:0": "is 100% busy", "gpu:2": "lost", "gpu:3": "cannot be read"}
        assert machine.in_use() == {"gpu:1": "", **others}
    assert probe.closed


def test_an_accelerator_that_waits_between_steps_is_not_free() -> None:
    probe, clock = StubProbe(), Clock()
    probe.busy = iter([0.0, 0.0, 50.0, 0.0, 0.0])
    found = []
    with MachineReader([probe], clock) as machine:
        for now in (0.0, 1.0, 2.0, 3.0, 5.0):
            clock.now = now
            found.append(machine.in_use()["gpu:1"])
    waits = "is free if it stays idle for 2 s"
    assert found == [waits, waits, "is 50% busy", waits, ""]
