"""NVIDIA GPUs through the true binding, against a stand-in for the driver's library."""

import ctypes
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil
import pynvml
import pytest

from accel_engine.devices import Reading, Sample, Sampler, nvidia_gpu
from accel_engine.devices.nvidia_gpu import NvidiaProbe
from accel_engine.devices.nvidia_queries import RARE_INTERVAL, SLOW_INTERVAL
from nvml.stand_in import COMPILER, Driver, build

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler to build the stand-in library with")

WaitUntil = Callable[..., None]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("nvml"))


class Clock:
    """A time that only tests let pass."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def driver(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    """Three GPUs, for this process, which are waited for as a busy machine needs; what stalls is let go at the end."""
    monkeypatch.setattr(nvidia_gpu, "SAMPLE_TIMEOUT", 30.0)
    driver = Driver(library, tmp_path / "script", 3)
    for name, value in driver.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(pynvml, "nvmlLib", ctypes.CDLL(str(driver.library)))
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    yield driver
    driver.relent()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def probe(driver: Driver, clock: Clock, tmp_path: Path) -> Iterator[NvidiaProbe]:
    probe = NvidiaProbe(tmp_path, clock)
    probe.inventory()
    yield probe
    probe.close()


def of(samples: Sequence[Sample], gpu: int) -> dict[str, Reading]:
    return dict(samples[gpu].readings)


def test_gpus_are_described(probe: NvidiaProbe) -> None:
    devices = probe.inventory().devices
    assert [device.id for device in devices] == ["gpu:0", "gpu:1", "gpu:2"]
    assert [device.address for device in devices] == ["0000:10:00.0", "0000:11:00.0", "0000:12:00.0"]
    assert {device.name for device in devices} == {"NVIDIA A100-SXM4-80GB"}
    assert {device.memory for device in devices} == {80 * 2**30}


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        (pynvml.NVML_ERROR_NO_PERMISSION, "requires administrator rights"),
        (pynvml.NVML_ERROR_GPU_IS_LOST, "lost: it no longer responds on the PCI bus"),
    ],
)
def test_why_a_gpu_is_not_described(driver: Driver, code: int, problem: str) -> None:
    driver.refuse("nvmlDeviceGetHandleByIndex_v2", 1, code)
    probe = NvidiaProbe()
    problems = [gpu.problem for gpu in probe.inventory().devices]
    probe.close()
    assert problems == ["", problem, ""]


def test_a_gpu_without_memory_of_its_own_has_the_hosts(driver: Driver) -> None:
    for function in ("nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetPciInfo_v3"):
        driver.refuse(function, 0, pynvml.NVML_ERROR_NOT_SUPPORTED)
    driver.refuse("nvmlDeviceGetMemoryInfo", 1, pynvml.NVML_ERROR_UNKNOWN)
    driver.refuse("nvmlDeviceGetMemoryInfo_v2", 1, pynvml.NVML_ERROR_UNKNOWN)
    probe = NvidiaProbe()
    found = probe.inventory().devices
    probe.close()
    host = psutil.virtual_memory().total
    assert [(gpu.memory, gpu.unified, gpu.problem) for gpu in found] == [
        (host, True, ""),
        (None, False, ""),
        (80 * 2**30, False, ""),
    ]


def test_everything_is_read(driver: Driver, probe: NvidiaProbe) -> None:
    driver.measure("pid", 0, os.getpid())
    readings = of(probe.sample(), 0)
    assert {name: (reading.value, reading.unit) for name, reading in readings.items()} == {
        "utilization": (87, "%"),
        "memory_utilization": (41, "%"),
        "memory_used": (61.5 * 2**30, "B"),
        "memory_total": (80 * 2**30, "B"),
        "temperature": (64, "C"),
        "power": (312.5, "W"),
        "power_limit": (400, "W"),
        "clock_sm": (1410, "MHz"),
        "clock_memory": (1593, "MHz"),
        "fan": (38, "%"),
        "throttling": (0, ""),
        "pcie_generation": (4, ""),
        "pcie_width": (16, ""),
        "pcie_received": (2.5e9, "B/s"),
        "pcie_sent": (1.2e8, "B/s"),
        "ecc_corrected": (2, ""),
        "ecc_uncorrected": (0, ""),
        "processes": (1, ""),
        "instances": (0, ""),
    }
    (process,) = readings["processes"].items
    assert (process.id, process.memory, process.computes) == (str(os.getpid()), 61.5 * 2**30, True)
    assert "py" in process.name


def test_what_keeps_the_clocks_down_is_told_in_words(driver: Driver, probe: NvidiaProbe) -> None:
    driver.measure("reasons", 0, 0x01)
    driver.measure("reasons", 1, 0x04)
    driver.measure("reasons", 2, 0x08 | 0x40 | 0x04)
    samples = probe.sample()
    words = [[part.name for part in of(samples, gpu)["throttling"].items] for gpu in range(3)]
    assert words == [[], ["power limit"], ["thermal slowdown", "power limit"]]
    assert [of(samples, gpu)["throttling"].value for gpu in range(3)] == [0, 1, 2]


def test_old_drivers_tell_of_throttling_by_its_old_name(driver: Driver, probe: NvidiaProbe) -> None:
    driver.refuse("nvmlDeviceGetCurrentClocksEventReasons", "*", pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
    driver.measure("reasons", 0, 0x08)
    assert [part.name for part in of(probe.sample(), 0)["throttling"].items] == [
        "hardware slowdown (temperature or power)"
    ]


def test_a_gpu_and_its_instances_are_known_by_their_uuids(driver: Driver) -> None:
    driver.measure("instances", 1, 2)
    probe = NvidiaProbe()
    kinds = [[uuid[:4] for uuid in gpu.uuids] for gpu in probe.inventory().devices[:2]]
    probe.close()
    assert kinds == [["GPU-"], ["GPU-", "MIG-", "MIG-"]]


def test_instances_are_told_with_their_memory(driver: Driver, probe: NvidiaProbe, clock: Clock) -> None:
    driver.measure("instances", 1, 2)
    driver.refuse("nvmlDeviceGetUtilizationRates", 1, pynvml.NVML_ERROR_NOT_SUPPORTED)
    probe.sample()
    clock.now += 1
    readings = of(probe.sample(), 1)
    assert [(part.name, part.memory, part.total) for part in readings["instances"].items] == [
        ("MIG 3g.40gb", 3 * 2**30, 40 * 2**30)
    ] * 2
    assert len({part.id for part in readings["instances"].items}) == 2
    assert "MIG" in readings["utilization"].reason


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (pynvml.NVML_ERROR_NOT_SUPPORTED, "does not report"),
        (pynvml.NVML_ERROR_NO_PERMISSION, "administrator"),
        (pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, "too old"),
        (pynvml.NVML_ERROR_UNKNOWN, "unknown error of the NVIDIA driver"),
        (pynvml.NVML_ERROR_IRQ_ISSUE, "the NVIDIA driver reports: "),
    ],
)
@pytest.mark.parametrize(
    ("function", "names"),
    [
        ("nvmlDeviceGetFanSpeed", {"fan"}),
        ("nvmlDeviceGetPcieThroughput", {"pcie_received", "pcie_sent"}),
        ("nvmlDeviceGetTotalEccErrors", {"ecc_corrected", "ecc_uncorrected"}),
        ("nvmlDeviceGetComputeRunningProcesses_v3", {"processes"}),
        ("nvmlDeviceGetMigMode", {"instances"}),
        ("nvmlDeviceGetEnforcedPowerLimit", {"power_limit"}),
    ],
)
def test_a_refused_field_costs_only_itself(
    driver: Driver, probe: NvidiaProbe, function: str, names: set[str], code: int, reason: str
) -> None:
    driver.refuse(function, 0, code)
    samples = probe.sample()
    missing = {name: reading for name, reading in of(samples, 0).items() if reading.value is None}
    assert set(missing) == names
    assert all(reason in reading.reason for reading in missing.values())
    assert all(reading.value is not None for reading in of(samples, 1).values())


def test_a_library_without_a_function_costs_that_field(
    probe: NvidiaProbe, monkeypatch: pytest.MonkeyPatch, driver: Driver
) -> None:
    class Old:
        """An old driver's library."""

        _library = ctypes.CDLL(str(driver.library))

        def __getattr__(self, name: str) -> object:
            if name == "nvmlDeviceGetFanSpeed":
                raise AttributeError(name)
            return getattr(self._library, name)

    monkeypatch.setattr(pynvml, "nvmlLib", Old())
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    readings = of(probe.sample(), 0)
    assert [name for name, reading in readings.items() if reading.value is None] == ["fan"]
    assert "too old" in readings["fan"].reason


def test_a_gpu_that_falls_off_the_bus_is_lost_and_the_others_go_on(driver: Driver, probe: NvidiaProbe) -> None:
    assert all(of(probe.sample(), gpu)["utilization"].value == 87 for gpu in range(3))
    driver.refuse("*", 1, pynvml.NVML_ERROR_GPU_IS_LOST)
    samples = probe.sample()
    assert all("lost" in reading.reason for reading in of(samples, 1).values())
    assert all(reading.value is not None for gpu in (0, 2) for reading in of(samples, gpu).values())
    driver.relent()
    assert all(reading.value is not None for reading in of(probe.sample(), 1).values())


def test_errors_are_told_and_named_where_the_gpu_is_lost(driver: Driver, clock: Clock, tmp_path: Path) -> None:
    probe = NvidiaProbe(tmp_path, clock, watches_errors=True)
    probe.inventory()
    assert not [sample for sample in probe.sample() if "errors" in sample.readings]
    for number in (48, 79):
        driver.measure("xid", 1, number)
        samples = probe.sample()
    lost = "error 79 (Xid): it fell off the PCI bus"
    assert [item.name for item in of(samples, 1)["errors"].items] == [
        "error 48 (Xid): two bits of its memory flipped at once",
        lost,
    ]
    assert "errors" not in of(samples, 0)
    driver.refuse("*", 1, pynvml.NVML_ERROR_GPU_IS_LOST)
    readings = of(probe.sample(), 1)
    assert readings["utilization"].reason == f"lost: it no longer responds on the PCI bus, after {lost}"
    assert len(readings["errors"].items) == 2
    probe.close()


def test_a_driver_without_events_costs_nothing_else(driver: Driver, clock: Clock, tmp_path: Path) -> None:
    driver.refuse("nvmlEventSetCreate", "*", pynvml.NVML_ERROR_NOT_SUPPORTED)
    probe = NvidiaProbe(tmp_path, clock, watches_errors=True)
    probe.inventory()
    assert [of(probe.sample(), gpu)["utilization"].value for gpu in range(3)] == [87, 87, 87]
    probe.close()


def test_a_call_that_stalls_costs_only_its_gpu(
    driver: Driver, probe: NvidiaProbe, monkeypatch: pytest.MonkeyPatch, wait_until: WaitUntil
) -> None:
    probe.sample()
    monkeypatch.setattr(nvidia_gpu, "SAMPLE_TIMEOUT", 0.1)
    driver.stall("nvmlDeviceGetPowerUsage", 1)

    def others() -> list[float | None]:
        samples = probe.sample()
        assert all("no response" in reading.reason for reading in of(samples, 1).values())
        return [of(samples, gpu)["utilization"].value for gpu in (0, 2)]

    for use in (12, 34):
        driver.measure("utilization", "*", use)
        wait_until(lambda use=use: others() == [use, use], "the readings of the others")
    driver.relent()
    wait_until(lambda: of(probe.sample(), 1)["power"].value == 312.5, "the GPU to be back")


def test_a_driver_that_hangs_does_not_stop_the_host_s_samples(driver: Driver, wait_until: WaitUntil) -> None:
    batches: list[tuple[Sample, ...]] = []
    sampler = Sampler(batches.append, interval=0.05)
    sampler.start()
    wait_until(lambda: batches and len(batches[-1]) > 3, "GPUs to be sampled")
    driver.stall("*", "*")

    def silent() -> bool:
        found = {sample.device: sample.readings["utilization"] for sample in batches[-1]}
        return all("no response" in found[f"gpu:{gpu}"].reason for gpu in range(3))

    wait_until(silent, "all GPUs to be silent")
    seen = len(batches)
    wait_until(lambda: len(batches) > seen + 5, "further batches")
    assert batches[-1][0].device == "cpu:0"
    wait_until(lambda: batches[-1][0].readings["memory_used"].value, "a batch that the host was in time for")
    sampler.stop()


def test_a_driver_that_vanishes_is_said_of_every_gpu(driver: Driver, probe: NvidiaProbe) -> None:
    driver.refuse("*", "*", pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
    samples = probe.sample()
    assert all("not loaded" in reading.reason for sample in samples for reading in sample.readings.values())


def test_a_gpu_that_stalls_from_the_start_is_listed(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wait_until: WaitUntil
) -> None:
    monkeypatch.setattr(nvidia_gpu, "GPU_DESCRIPTION_TIMEOUT", 0.2)
    driver.stall("nvmlDeviceGetName", 1)
    probe = NvidiaProbe(tmp_path)
    names = ["NVIDIA A100-SXM4-80GB", "NVIDIA GPU", "NVIDIA A100-SXM4-80GB"]
    wait_until(lambda: [device.name for device in probe.inventory().devices] == names, "the names of the others")
    samples = probe.sample()
    assert [sample.device for sample in samples] == ["gpu:0", "gpu:1", "gpu:2"]
    assert "has not responded yet" in of(samples, 1)["utilization"].reason
    driver.relent()
    wait_until(lambda: of(probe.sample(), 1)["utilization"].value == 87, "the GPU to be read")
    probe.close()


def test_slow_questions_are_asked_seldom(driver: Driver, probe: NvidiaProbe, clock: Clock) -> None:
    probe.sample()
    driver.measure("utilization", 0, 10)
    driver.measure("fan", 0, 99)
    driver.measure("received", 0, 7)
    clock.now += 1
    seen = of(probe.sample(), 0)
    assert (seen["utilization"].value, seen["fan"].value, seen["pcie_received"].value) == (10, 38, 2.5e9)
    clock.now += SLOW_INTERVAL
    seen = of(probe.sample(), 0)
    assert (seen["fan"].value, seen["pcie_received"].value) == (99, 2.5e9)
    clock.now += RARE_INTERVAL
    assert of(probe.sample(), 0)["pcie_received"].value == 7000


def test_gpus_take_turns_with_what_is_slow(driver: Driver, probe: NvidiaProbe, clock: Clock) -> None:
    probe.sample()
    driver.measure("received", "*", 7)
    clock.now += 1
    news = []
    for _ in range(int(RARE_INTERVAL)):
        news.append([of(probe.sample(), gpu)["pcie_received"].value == 7000 for gpu in range(3)].count(True))
        clock.now += 1
    assert {after - before for before, after in itertools.pairwise(news)} == {0, 1}
    assert news[-1] == 3
