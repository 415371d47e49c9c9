"""What TPU chips are doing: stand-ins for the kernel's files and for the runtime that uses the chips."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from accel_engine.devices import Device, Inventory, Reading, Sample, Sampler, tpu_metrics
from accel_engine.devices.tpu_metrics import DUTY_CYCLE, MEMORY_TOTAL, MEMORY_USED
from accel_engine.devices.tpu_probe import TpuProbe
from tpu_runtime.machine import add, hold, node
from tpu_runtime.stand_in import GIB, Runtime, kept

V3, V4, V5E, SEVEN = ("0x0027", "0x004f"), ("0x005e", ""), ("0x0063", ""), ("0x0076", "")


def chips(root: Path, count: int, ids: tuple[str, str]) -> None:
    """Put chips on the bus, with their files in ``/dev`` and a ``/proc`` without a program."""
    for index in range(count):
        for function in range(2 if ids is SEVEN else 1):
            group = 2 * index + function if ids in {V5E, SEVEN} else None
            add(root, f"0000:00:0{4 + index}.{function}", *ids, group=group)
            node(root, f"accel{index}" if group is None else f"vfio/{group}")
    (root / "proc").mkdir()


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    runtime = Runtime()
    yield runtime
    runtime.stop()


@pytest.fixture
def read(tmp_path: Path, runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[Sample]]]:
    """Read the chips that are there at the first call; every call looks anew at who holds them."""
    monkeypatch.setattr(tpu_metrics, "READ_TIMEOUT", 30.0)
    monkeypatch.setattr("accel_engine.devices.tpu_probe.HOLDERS_INTERVAL", 0.0)
    monkeypatch.setenv("TPU_RUNTIME_METRICS_PORTS", str(runtime.port))
    probe = TpuProbe(tmp_path)

    def read() -> list[Sample]:
        if not probe.sample():
            probe.inventory()
        return list(probe.sample())

    yield read
    probe.close()


Read = Callable[[], list[Sample]]


def values(samples: list[Sample], name: str) -> list[float | None]:
    """A reading of every chip."""
    return [sample.readings[name].value if name in sample.readings else None for sample in samples]


def reasons(samples: list[Sample], name: str = "utilization") -> list[str]:
    return [sample.readings[name].reason for sample in samples]


def test_chips_of_one_device(tmp_path: Path, read: Read, runtime: Runtime) -> None:
    chips(tmp_path, 4, V5E)
    runtime.values = {
        DUTY_CYCLE: {0: 0.0, 1: 25.0, 2: 50.0, 3: 100.0},
        MEMORY_USED: {index: index * GIB for index in range(4)},
        MEMORY_TOTAL: dict.fromkeys(range(4), 15 * GIB),
    }
    samples = read()
    assert [sample.device for sample in samples] == [f"tpu:{index}" for index in range(4)]
    assert values(samples, "utilization") == [0, 25, 50, 100]
    assert values(samples, "memory_used") == [0, GIB, 2 * GIB, 3 * GIB]
    assert values(samples, "memory_total") == [15 * GIB] * 4
    assert samples[0].readings["utilization"].unit == "%"
    assert samples[0].readings["memory_used"].unit == "B"


def test_chips_of_two_devices_have_one_duty_cycle_and_the_memory_of_both(
    tmp_path: Path, read: Read, runtime: Runtime
) -> None:
    chips(tmp_path, 2, V3)
    runtime.values = {
        DUTY_CYCLE: {0: 80.0, 1: 20.0},
        MEMORY_USED: {0: 1, 1: 2, 2: 30, 3: 40},
        MEMORY_TOTAL: dict.fromkeys(range(4), 16 * GIB),
    }
    samples = read()
    assert values(samples, "utilization") == [80, 20]
    assert values(samples, "memory_used") == [3, 70]
    assert values(samples, "memory_total") == [32 * GIB] * 2
    assert "core_0" not in samples[0].readings


def test_cores_that_the_runtime_counts_apart_are_told_apart(tmp_path: Path, read: Read, runtime: Runtime) -> None:
    chips(tmp_path, 2, SEVEN)
    runtime.values = {
        DUTY_CYCLE: {0: 80.0, 1: 100.0, 2: 0.0, 3: 10.0},
        MEMORY_USED: dict.fromkeys(range(4), GIB),
        MEMORY_TOTAL: dict.fromkeys(range(4), 96 * GIB),
    }
    samples = read()
    assert values(samples, "utilization") == [90, 5]
    assert values(samples, "core_0") == [80, 0]
    assert values(samples, "core_1") == [100, 10]
    assert values(samples, "memory_total") == [192 * GIB] * 2


def test_a_program_that_has_some_chips_tells_of_those(tmp_path: Path, read: Read, runtime: Runtime) -> None:
    chips(tmp_path, 4, V4)
    hold(tmp_path, 71, "python3", "accel2", "accel3")
    runtime.values |= {DUTY_CYCLE: {0: 40.0, 1: 60.0}}
    samples = read()
    assert values(samples, "utilization") == [None, None, 40, 60]
    assert reasons(samples)[0] == "no program uses the chip"
    assert values(samples, "processes") == [0, 0, 1, 1]
    assert [(part.name, part.id) for part in samples[2].readings["processes"].items] == [("python3", "71")]


def test_programs_that_each_have_a_chip_tell_each_of_theirs(
    tmp_path: Path, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tpu_metrics, "READ_TIMEOUT", 30.0)
    other = Runtime(duty=[60])
    chips(tmp_path, 2, V4)
    hold(tmp_path, 71, "python3", "accel0")
    hold(tmp_path, 72, "python3", "accel1")
    runtime.values |= {DUTY_CYCLE: {0: 40.0}}
    probe = TpuProbe(tmp_path, f"{runtime.port}, {other.port}")
    probe.inventory()
    assert values(list(probe.sample()), "utilization") == [40, 60]
    probe.close()
    other.stop()


def test_values_that_fit_no_chips_are_given_to_none(tmp_path: Path, read: Read, runtime: Runtime) -> None:
    chips(tmp_path, 4, V4)
    runtime.values |= {DUTY_CYCLE: {0: 40.0, 1: 60.0, 2: 1.0}}
    samples = read()
    assert values(samples, "utilization") == [None] * 4
    assert set(reasons(samples)) == {"the TPU runtime reports 3 devices, which cannot be matched to chips"}


def test_no_program_then_one_that_says_nothing_then_one_that_does(
    tmp_path: Path, read: Read, runtime: Runtime, wait_until: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tpu_metrics, "_RECONNECT", 100)
    chips(tmp_path, 1, V5E)
    port = runtime.port
    with kept(port):
        runtime.stop()
        (sample,) = read()
        assert sample.readings["utilization"] == Reading.missing("no program uses the chip", "%")
        assert sample.readings["memory_used"] == Reading.missing("no program uses the chip", "B")
        assert sample.readings["memory_total"].value == 16 * GIB
        hold(tmp_path, 71, "python3", "vfio/0")
        served = (
            f"python3 (71) holds the chip, but serves no metrics (TensorFlow may not serve them) at localhost:{port}"
        )
        assert reasons(read()) == [served]
        again = Runtime(duty=[50], used=[1], port=port)
    wait_until(lambda: values(read(), "utilization") == [50], "the program's readings")
    assert values(read(), "memory_used") == [1]
    again.stop()


def test_programs_of_others_may_be_hidden(
    tmp_path: Path, read: Read, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    chips(tmp_path, 1, V4)
    hold(tmp_path, 71, "python3", "accel0")
    monkeypatch.setattr("accel_engine.devices.tpu_chips._open_files", _forbidden)
    runtime.stop()
    (sample,) = read()
    assert sample.readings["utilization"].reason == f"no program serves TPU metrics at localhost:{runtime.port}"
    assert "processes" not in sample.readings


def _forbidden(path: object) -> None:
    raise PermissionError(path)


def test_holders_are_looked_for_seldom(tmp_path: Path, runtime: Runtime) -> None:
    chips(tmp_path, 1, V4)
    now = 100.0
    probe = TpuProbe(tmp_path, str(runtime.port), clock=lambda: now)
    probe.inventory()
    probe.sample()
    hold(tmp_path, 71, "python3", "accel0")
    now += 9
    assert values(list(probe.sample()), "processes") == [0]
    now += 1
    assert values(list(probe.sample()), "processes") == [1]
    probe.close()


class FineProbe:
    """A device of another kind."""

    kind = "gpu"

    def inventory(self) -> Inventory:
        return Inventory((Device("gpu:0", "gpu", "a GPU"),))

    def sample(self) -> tuple[Sample, ...]:
        return (Sample(0.0, "gpu:0", {"utilization": Reading(1.0, "%")}),)

    def close(self) -> None:
        """Nothing is held open."""


def test_a_runtime_that_stalls_keeps_no_other_device_waiting(
    tmp_path: Path, runtime: Runtime, wait_until: Callable[..., None]
) -> None:
    chips(tmp_path, 1, V4)
    runtime.stall()
    batches: list[tuple[Sample, ...]] = []
    sampler = Sampler(batches.append, 0.02, [TpuProbe(tmp_path, str(runtime.port)), FineProbe()])
    sampler.start()

    def latest(device: str) -> Reading:
        return next(sample.readings["utilization"] for sample in batches[-1] if sample.device == device)

    wait_until(lambda: batches and len(batches[-1]) == 2, "samples of both")
    wait_until(lambda: "no response from" in latest("tpu:0").reason, "the reason")
    wait_until(lambda: latest("gpu:0").value == 1, "the other device's reading")
    assert latest("tpu:0").value is None
    runtime.values |= {DUTY_CYCLE: {0: 40.0}}
    runtime.flow()
    wait_until(lambda: latest("tpu:0").value == 40, "the runtime to be read again")
    sampler.stop()
