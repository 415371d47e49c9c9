"""What is asked of the NVIDIA driver about a GPU, and how often."""

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import psutil

from accel_engine.devices.nvidia_messages import throttling
from accel_engine.devices.reading import CountedItem

SLOW = 5.0
"""Seconds between two looks at what changes by and by."""

RARE = 30.0
"""Seconds between two looks at what hardly changes, or what takes the driver long to tell."""

QueryValue = float | tuple[CountedItem, ...]
"""A number, or the things that are counted."""


@dataclass(frozen=True, slots=True)
class Query:
    """One question to the driver.

    Attributes:
        units: The readings that the answer gives, in order, each a name and its unit.
        ask: Takes the binding and a GPU's handle; gives as many answers as there are units.
        every: Seconds from one time that it is asked to the next; 0 for every sample.
    """

    units: tuple[tuple[str, str], ...]
    ask: Callable[[Any, Any], tuple[QueryValue, ...]]
    every: float = 0.0


def memory(nvml: Any, handle: Any) -> tuple[float, float]:
    """Bytes used and in all, of a GPU or an instance of one."""
    try:
        # The second version leaves out what the driver reserves for itself, as nvidia-smi does.
        found = nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
    except nvml.NVMLError:
        found = nvml.nvmlDeviceGetMemoryInfo(handle)
    return float(found.used), float(found.total)


def _utilization(nvml: Any, gpu: Any) -> tuple[float, float]:
    rates = nvml.nvmlDeviceGetUtilizationRates(gpu)
    return float(rates.gpu), float(rates.memory)


def _throttling(nvml: Any, gpu: Any) -> tuple[tuple[CountedItem, ...]]:
    try:
        bits = nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu)
    except nvml.NVMLError_FunctionNotFound:  # drivers before 535 have it under its old name
        bits = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu)
    return (throttling(bits),)


def _processes(nvml: Any, gpu: Any) -> tuple[tuple[CountedItem, ...]]:
    """The programs on a GPU and on the instances that it is split into, the largest first."""
    found: dict[int, int | None] = {}
    # By their versions: the plain names raise something else than NVMLError at an old driver.
    for handle in (gpu, *_instance_handles(nvml, gpu)):
        running = list(nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle))
        with contextlib.suppress(nvml.NVMLError):  # not told of an instance, nor of GPUs that only compute
            running += nvml.nvmlDeviceGetGraphicsRunningProcesses_v3(handle)
        found |= {process.pid: process.usedGpuMemory for process in running}
    parts = (CountedItem(_program(pid), str(pid), memory=used) for pid, used in found.items())
    return (tuple(sorted(parts, key=lambda part: -(part.memory or 0))),)


def _program(pid: int) -> str:
    """A program's name; the driver's process ids mean nothing inside some containers."""
    try:
        return psutil.Process(pid).name()
    except (psutil.Error, OSError):
        return "?"


def _instances(nvml: Any, gpu: Any) -> tuple[tuple[CountedItem, ...]]:
    """The instances that a GPU is split into (MIG), with their memory."""
    current, _ = nvml.nvmlDeviceGetMigMode(gpu)
    if current != nvml.NVML_DEVICE_MIG_ENABLE:
        return ((),)
    return (tuple(_instance(nvml, handle) for handle in _instance_handles(nvml, gpu)),)


def uuids(nvml: Any, gpu: Any) -> tuple[str, ...]:
    """What identifies a GPU, and each of the instances that it is split into, wherever they are plugged in."""
    return tuple(text(nvml.nvmlDeviceGetUUID(handle)) for handle in (gpu, *_instance_handles(nvml, gpu)))


def _instance(nvml: Any, handle: Any) -> CountedItem:
    used = total = None
    with contextlib.suppress(nvml.NVMLError):
        used, total = (int(size) for size in memory(nvml, handle))
    # A full name repeats the GPU's: NVIDIA A100-SXM4-40GB MIG 1g.5gb
    name = text(nvml.nvmlDeviceGetName(handle)).rpartition("MIG ")[2]
    return CountedItem(f"MIG {name}", text(nvml.nvmlDeviceGetUUID(handle)), used, total)


def _instance_handles(nvml: Any, gpu: Any) -> Iterable[Any]:
    try:
        if nvml.nvmlDeviceGetMigMode(gpu)[0] != nvml.NVML_DEVICE_MIG_ENABLE:
            return
        most = nvml.nvmlDeviceGetMaxMigDeviceCount(gpu)
    except nvml.NVMLError:
        return
    for index in range(most):
        with contextlib.suppress(nvml.NVMLError):  # most places are empty
            yield nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index)


def text(value: str | bytes) -> str:
    """What the binding gives as text, or gave as bytes once."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _one(name: str, unit: str, ask: Callable[[Any, Any], float], every: float = 0.0) -> Query:
    return Query(((name, unit),), lambda nvml, gpu: (float(ask(nvml, gpu)),), every)


QUERIES = (
    Query((("utilization", "%"), ("memory_utilization", "%")), _utilization),
    Query((("memory_used", "B"), ("memory_total", "B")), memory),
    _one("temperature", "C", lambda nvml, gpu: nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU)),
    _one("power", "W", lambda nvml, gpu: nvml.nvmlDeviceGetPowerUsage(gpu) / 1000),
    _one("clock_sm", "MHz", lambda nvml, gpu: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM)),
    Query((("throttling", ""),), _throttling),
    _one("power_limit", "W", lambda nvml, gpu: nvml.nvmlDeviceGetEnforcedPowerLimit(gpu) / 1000, SLOW),
    _one("clock_memory", "MHz", lambda nvml, gpu: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_MEM), SLOW),
    _one("fan", "%", lambda nvml, gpu: nvml.nvmlDeviceGetFanSpeed(gpu), SLOW),
    _one("pcie_generation", "", lambda nvml, gpu: nvml.nvmlDeviceGetCurrPcieLinkGeneration(gpu), SLOW),
    _one("pcie_width", "", lambda nvml, gpu: nvml.nvmlDeviceGetCurrPcieLinkWidth(gpu), SLOW),
    Query((("processes", ""),), _processes, SLOW),
    # The driver counts for 20 ms or more before it answers; in kilobytes.
    _one(
        "pcie_received",
        "B/s",
        lambda nvml, gpu: 1000 * nvml.nvmlDeviceGetPcieThroughput(gpu, nvml.NVML_PCIE_UTIL_RX_BYTES),
        RARE,
    ),
    _one(
        "pcie_sent",
        "B/s",
        lambda nvml, gpu: 1000 * nvml.nvmlDeviceGetPcieThroughput(gpu, nvml.NVML_PCIE_UTIL_TX_BYTES),
        RARE,
    ),
    # Since the driver was loaded.
    _one(
        "ecc_corrected",
        "",
        lambda nvml, gpu: nvml.nvmlDeviceGetTotalEccErrors(
            gpu, nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, nvml.NVML_VOLATILE_ECC
        ),
        RARE,
    ),
    _one(
        "ecc_uncorrected",
        "",
        lambda nvml, gpu: nvml.nvmlDeviceGetTotalEccErrors(
            gpu, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
        ),
        RARE,
    ),
    Query((("instances", ""),), _instances, RARE),
)
"""Everything that is asked of a GPU. What one question asks fails together, and for one reason."""
