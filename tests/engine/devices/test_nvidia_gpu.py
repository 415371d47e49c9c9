"""NVIDIA GPUs, against a stand-in for the binding that answers, refuses and loses GPUs."""

# ruff: noqa: N802 (the stand-in has the names of what it stands in for)

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import pynvml
import pytest

from accel_engine.devices import nvidia_gpu, nvidia_queries
from accel_engine.devices.nvidia_gpu import NvidiaProbe


@dataclass
class FakeGpu:
    """A GPU, and the errors with which it answers, by the name of the function."""

    name: str = "NVIDIA H100 80GB HBM3"
    bus: str = "00000000:3B:00.0"
    refusals: dict[str, int] = field(default_factory=dict)


class FakeBinding(ModuleType):
    """What is used of ``pynvml``: its functions over fake GPUs, its true constants and errors."""

    def __init__(self, *gpus: FakeGpu) -> None:
        super().__init__("pynvml")
        self.gpus = list(gpus)
        self.opened = 0
        self.calls: list[str] = []
        self.refusal: int | None = None

    def __getattr__(self, name: str) -> Any:
        value = getattr(pynvml, name)
        assert not isinstance(value, FunctionType), f"{name} would reach for a real driver"
        return value

    def nvmlInit(self) -> None:
        if self.refusal is not None:
            raise pynvml.NVMLError(self.refusal)
        self.opened += 1

    def nvmlShutdown(self) -> None:
        self._check("nvmlShutdown")
        self.opened -= 1

    def nvmlDeviceGetCount(self) -> int:
        self._check("nvmlDeviceGetCount")
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> FakeGpu:
        self._check("nvmlDeviceGetHandleByIndex", self.gpus[index])
        return self.gpus[index]

    def nvmlDeviceGetName(self, gpu: FakeGpu) -> str:
        self._check("nvmlDeviceGetName", gpu)
        return gpu.name

    def nvmlDeviceGetUUID(self, gpu: FakeGpu) -> str:
        self._check("nvmlDeviceGetUUID", gpu)
        return f"GPU-{gpu.bus}"

    def nvmlDeviceGetPciInfo(self, gpu: FakeGpu) -> SimpleNamespace:
        self._check("nvmlDeviceGetPciInfo", gpu)
        return SimpleNamespace(busId=gpu.bus)

    def nvmlDeviceGetUtilizationRates(self, gpu: FakeGpu) -> SimpleNamespace:
        self._check("nvmlDeviceGetUtilizationRates", gpu)
        return SimpleNamespace(gpu=87, memory=41)

    def nvmlDeviceGetMemoryInfo(self, gpu: FakeGpu, version: int | None = None) -> SimpleNamespace:
        self._check("nvmlDeviceGetMemoryInfo" + ("_v2" if version else ""), gpu)
        reserved = 0 if version else 2**29
        return SimpleNamespace(total=80 * 2**30, used=2**30 + reserved, free=79 * 2**30 - reserved)

    def nvmlDeviceGetTemperature(self, gpu: FakeGpu, sensor: int) -> int:
        assert sensor == pynvml.NVML_TEMPERATURE_GPU
        self._check("nvmlDeviceGetTemperature", gpu)
        return 64

    def nvmlDeviceGetPowerUsage(self, gpu: FakeGpu) -> int:
        self._check("nvmlDeviceGetPowerUsage", gpu)
        return 412_500

    def nvmlDeviceGetEnforcedPowerLimit(self, gpu: FakeGpu) -> int:
        self._check("nvmlDeviceGetEnforcedPowerLimit", gpu)
        return 700_000

    def nvmlDeviceGetClockInfo(self, gpu: FakeGpu, clock: int) -> int:
        self._check("nvmlDeviceGetClockInfo", gpu)
        return {pynvml.NVML_CLOCK_SM: 1980, pynvml.NVML_CLOCK_MEM: 2619}[clock]

    def nvmlDeviceGetCurrentClocksEventReasons(self, gpu: FakeGpu) -> int:
        self._check("nvmlDeviceGetCurrentClocksEventReasons", gpu)
        return int(pynvml.nvmlClocksEventReasonSwPowerCap)

    def nvmlDeviceGetFanSpeed(self, gpu: FakeGpu) -> int:
        self._check("nvmlDeviceGetFanSpeed", gpu)
        return 38

    def nvmlDeviceGetCurrPcieLinkGeneration(self, gpu: FakeGpu) -> int:
        self._check("nvmlDeviceGetCurrPcieLinkGeneration", gpu)
        return 5

    def nvmlDeviceGetCurrPcieLinkWidth(self, gpu: FakeGpu) -> int:
        self._check("nvmlDeviceGetCurrPcieLinkWidth", gpu)
        return 16

    def nvmlDeviceGetPcieThroughput(self, gpu: FakeGpu, counter: int) -> int:
        self._check("nvmlDeviceGetPcieThroughput", gpu)
        return {pynvml.NVML_PCIE_UTIL_RX_BYTES: 2500, pynvml.NVML_PCIE_UTIL_TX_BYTES: 120}[counter]

    def nvmlDeviceGetTotalEccErrors(self, gpu: FakeGpu, kind: int, counter: int) -> int:
        assert counter == pynvml.NVML_VOLATILE_ECC
        self._check("nvmlDeviceGetTotalEccErrors", gpu)
        return {pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED: 2, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED: 0}[kind]

    def nvmlDeviceGetMigMode(self, gpu: FakeGpu) -> list[int]:
        self._check("nvmlDeviceGetMigMode", gpu)
        return [pynvml.NVML_DEVICE_MIG_DISABLE] * 2

    def nvmlDeviceGetComputeRunningProcesses_v3(self, gpu: FakeGpu) -> list[SimpleNamespace]:
        self._check("nvmlDeviceGetComputeRunningProcesses_v3", gpu)
        return [SimpleNamespace(pid=os.getpid(), usedGpuMemory=2**30)]

    def nvmlDeviceGetGraphicsRunningProcesses_v3(self, gpu: FakeGpu) -> list[SimpleNamespace]:
        self._check("nvmlDeviceGetGraphicsRunningProcesses_v3", gpu)
        return []

    def _check(self, function: str, gpu: FakeGpu | None = None) -> None:
        self.calls.append(function)
        if not self.opened:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_UNINITIALIZED)
        if gpu is not None and (code := gpu.refusals.get(function, gpu.refusals.get("*"))) is not None:
            raise pynvml.NVMLError(code)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., tuple[NvidiaProbe, FakeBinding]]]:
    """Open a probe on a stand-in binding, patient enough for a busy machine; it is closed at the end."""
    monkeypatch.setattr(nvidia_gpu, "SAMPLE_TIMEOUT", 30.0)
    probes = []

    def start(*gpus: FakeGpu) -> tuple[NvidiaProbe, FakeBinding]:
        binding = FakeBinding(*gpus)
        monkeypatch.setitem(sys.modules, "pynvml", binding)
        probe = NvidiaProbe(tmp_path)
        probes.append((probe, binding))
        return probe, binding

    yield start
    for probe, binding in probes:
        probe.close()
        assert binding.opened == 0, "the library was left open"


Start = Callable[..., tuple[NvidiaProbe, FakeBinding]]


def test_gpus_are_described_in_the_library_s_order(opened: Start) -> None:
    probe, _ = opened(FakeGpu(), FakeGpu("NVIDIA A100-SXM4-40GB", "00000000:AF:00.0"))
    first, second = probe.inventory().devices
    assert (first.id, first.kind, first.name) == ("gpu:0", "gpu", "NVIDIA H100 80GB HBM3")
    assert (first.memory, first.free) == (80 * 2**30, 79 * 2**30)
    assert first.address == "0000:3b:00.0"
    assert (second.id, second.name, second.address) == ("gpu:1", "NVIDIA A100-SXM4-40GB", "0000:af:00.0")
    assert probe.inventory().unavailable == ()


def test_a_gpu_is_read(opened: Start) -> None:
    probe, _ = opened(FakeGpu())
    probe.inventory()
    (sample,) = probe.sample()
    assert sample.device == "gpu:0"
    assert all(reading.value is not None for reading in sample.readings.values())
    shown = {"utilization": 87, "memory_used": 2**30, "temperature": 64, "power": 412.5, "clock_memory": 2619}
    assert {name: sample.readings[name].value for name in shown} == shown
    assert [part.name for part in sample.readings["throttling"].items] == ["power limit"]
    assert [part.id for part in sample.readings["processes"].items] == [str(os.getpid())]


@pytest.mark.parametrize(
    ("namespace", "file", "is_named"),
    [
        ("pid:[4026531836]", "", True),
        ("pid:[4026532771]", "", False),  # a container: the id may be the host's, and another process here
        ("pid:[4026532771]", "/dev/nvidia0", True),
    ],
)
def test_a_process_in_a_container_is_named_only_if_it_has_the_gpu_open(
    opened: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, namespace: str, file: str, is_named: bool
) -> None:
    (tmp_path / "ns").symlink_to(namespace)
    monkeypatch.setattr(nvidia_queries, "_NAMESPACE", str(tmp_path / "ns"))
    read = os.readlink
    monkeypatch.setattr(os, "readlink", lambda path: file or read(path) if "/fd/" in str(path) else read(path))
    probe, _ = opened(FakeGpu())
    probe.inventory()
    (process,) = probe.sample()[0].readings["processes"].items
    assert process.id == str(os.getpid())
    assert (process.name != "?") is is_named


def test_an_old_driver_gives_memory_the_old_way(opened: Start) -> None:
    probe, _ = opened(FakeGpu(refusals={"nvmlDeviceGetMemoryInfo_v2": pynvml.NVML_ERROR_FUNCTION_NOT_FOUND}))
    probe.inventory()
    (sample,) = probe.sample()
    assert sample.readings["memory_used"].value == 2**30 + 2**29


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (pynvml.NVML_ERROR_NOT_SUPPORTED, "does not report"),
        (pynvml.NVML_ERROR_NO_PERMISSION, "administrator"),
        (pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, "too old"),
        (pynvml.NVML_ERROR_UNKNOWN, "unknown error of the NVIDIA driver"),
        (pynvml.NVML_ERROR_IRQ_ISSUE, "Interrupt Request Issue"),
    ],
)
def test_a_refused_field_costs_only_itself(opened: Start, code: int, reason: str) -> None:
    probe, _ = opened(FakeGpu(refusals={"nvmlDeviceGetPowerUsage": code}))
    probe.inventory()
    (sample,) = probe.sample()
    power = sample.readings["power"]
    assert (power.value, power.unit) == (None, "W")
    assert reason in power.reason
    assert [name for name, reading in sample.readings.items() if reading.value is None] == ["power"]


def test_a_gpu_lost_midway_does_not_take_the_others_along(opened: Start) -> None:
    probe, binding = opened(FakeGpu(), FakeGpu(bus="00000000:AF:00.0"))
    probe.inventory()
    assert all(sample.readings["utilization"].value == 87 for sample in probe.sample())
    binding.gpus[0].refusals["*"] = pynvml.NVML_ERROR_GPU_IS_LOST
    lost, fine = probe.sample()
    assert all(reading.value is None and "lost" in reading.reason for reading in lost.readings.values())
    assert all(reading.value is not None for reading in fine.readings.values())


def test_a_gpu_that_was_lost_is_asked_for_again(opened: Start) -> None:
    probe, binding = opened(FakeGpu())
    probe.inventory()
    probe.sample()
    binding.gpus[0].refusals["*"] = pynvml.NVML_ERROR_GPU_IS_LOST
    probe.sample()
    binding.gpus[0].refusals.clear()

    (sample,) = probe.sample()

    assert all(reading.value is not None for reading in sample.readings.values())
    assert binding.calls.count("nvmlDeviceGetHandleByIndex") == 2, "the old handle is of a GPU that is gone"


def test_a_gpu_that_is_lost_from_the_start_is_listed_and_read_when_it_is_back(opened: Start) -> None:
    probe, binding = opened(FakeGpu(refusals={"*": pynvml.NVML_ERROR_GPU_IS_LOST}), FakeGpu())
    lost, fine = probe.inventory().devices
    assert (lost.id, lost.name, lost.memory, lost.address) == ("gpu:0", "NVIDIA GPU", None, "")
    assert fine.id == "gpu:1"
    assert "lost" in probe.sample()[0].readings["utilization"].reason
    binding.gpus[0].refusals.clear()
    assert probe.sample()[0].readings["utilization"].value == 87


def test_handles_are_asked_for_once(opened: Start) -> None:
    probe, binding = opened(FakeGpu())
    probe.inventory()
    for _ in range(3):
        probe.sample()
    assert binding.calls.count("nvmlDeviceGetHandleByIndex") == 1


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, "no NVIDIA driver"),
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "not loaded"),
        (pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, "restart the machine"),
        (pynvml.NVML_ERROR_UNKNOWN, "unknown error of the NVIDIA driver"),
    ],
)
def test_a_driver_that_does_not_start_is_an_absence(opened: Start, code: int, reason: str) -> None:
    probe, binding = opened()
    binding.refusal = code
    inventory = probe.inventory()
    assert inventory.devices == ()
    (absence,) = inventory.unavailable
    assert absence.kind == "gpu"
    assert reason in absence.reason
    assert probe.sample() == ()


def test_a_driver_without_gpus_is_an_absence(opened: Start) -> None:
    probe, _ = opened()
    (absence,) = probe.inventory().unavailable
    assert absence.reason == "the NVIDIA driver finds no GPU"


def test_a_sleeping_gpu_is_left_asleep(opened: Start, tmp_path: Path) -> None:
    status = tmp_path / "bus/pci/devices/0000:3b:00.0/power/runtime_status"
    status.parent.mkdir(parents=True)
    status.write_text("suspended\n")
    probe, binding = opened(FakeGpu())
    probe.inventory()
    binding.calls.clear()
    (sample,) = probe.sample()
    assert binding.calls == []
    assert all("suspended" in reading.reason for reading in sample.readings.values())
    status.write_text("active\n")
    (sample,) = probe.sample()
    assert sample.readings["utilization"].value == 87


def test_the_true_binding_without_a_driver_is_an_absence(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("libnvidia-ml.so.1: cannot open shared object file")

    monkeypatch.setattr(pynvml, "CDLL", fail)
    monkeypatch.setattr(pynvml, "nvmlLib", None)
    probe = NvidiaProbe()
    (absence,) = probe.inventory().unavailable
    assert absence.reason == "no NVIDIA driver"
    probe.close()


def test_what_is_asked_of_the_binding_is_there() -> None:
    functions = [name for name in vars(FakeBinding) if name.startswith("nvml")]
    assert functions
    assert all(isinstance(getattr(pynvml, name), FunctionType) for name in functions)
