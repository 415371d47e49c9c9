"""The queries to the NVIDIA driver about a GPU, their intervals, and the meaning of its answers."""

import contextlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import psutil

from accel_engine.devices.device_types import CountedItem

SLOW_INTERVAL = 5.0
"""Seconds between queries of slowly changing values."""

RARE_INTERVAL = 30.0
"""Seconds between queries of values that hardly change, or that are slow to query."""

_MAX_INSTANCES = 64
"""MIG instances that are looked for, whatever a driver reports; GPUs have up to 7."""

QueryValue = float | tuple[CountedItem, ...]
"""A number, or counted items."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query to the driver."""

    units: tuple[tuple[str, str], ...]
    """Name and unit of each value, in order."""
    read: Callable[[Any, Any], tuple[QueryValue, ...]]
    """Takes the ``pynvml`` module and a GPU's handle; returns a value per unit."""
    interval: float = 0.0
    """Seconds between queries; 0 for every sample."""


def memory(nvml: Any, handle: Any) -> tuple[float, float]:
    """Used and total bytes of a GPU or MIG instance."""
    try:
        # The second version excludes the driver's reserved memory, as nvidia-smi does.
        usage = nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
    except nvml.NVMLError:
        usage = nvml.nvmlDeviceGetMemoryInfo(handle)
    return float(usage.used), float(usage.total)


def _utilization(nvml: Any, gpu: Any) -> tuple[float, float]:
    rates = nvml.nvmlDeviceGetUtilizationRates(gpu)
    return float(rates.gpu), float(rates.memory)


def _throttling(nvml: Any, gpu: Any) -> tuple[tuple[CountedItem, ...]]:
    try:
        bits = nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu)
    except nvml.NVMLError_FunctionNotFound:  # the old name, before driver 535
        bits = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu)
    return (_throttle_reasons(bits),)


def _processes(nvml: Any, gpu: Any) -> tuple[tuple[CountedItem, ...]]:
    """The processes on a GPU and its MIG instances, those with the most memory first."""
    memory_by_pid: dict[int, int | None] = {}
    computing: set[int] = set()
    # With explicit versions: the plain names raise other errors than NVMLError with an old driver.
    for handle in (gpu, *_instance_handles(nvml, gpu)):
        running, drawing = list(nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle)), []
        with contextlib.suppress(nvml.NVMLError):  # not supported for MIG instances and compute-only GPUs
            drawing = list(nvml.nvmlDeviceGetGraphicsRunningProcesses_v3(handle))
        memory_by_pid |= {process.pid: process.usedGpuMemory for process in (*running, *drawing)}
        computing |= {process.pid for process in running} - {process.pid for process in drawing}
    processes = (
        CountedItem(_process_name(pid), str(pid), memory=used, computes=pid in computing)
        for pid, used in memory_by_pid.items()
    )
    return (tuple(sorted(processes, key=lambda process: -(process.memory or 0))),)


UNKNOWN_PROCESS = "?"
"""The name of a process that cannot be seen from here."""

_HOST = "pid:[4026531836]"
"""The first namespace of process ids, the host's; the number is fixed in Linux (``PROC_PID_INIT_INO``)."""


def _process_name(pid: int) -> str:
    """A process's name.

    In a container, the driver may give the host's process ids, which belong to other processes there: only one that has
    a file of the driver open is meant.
    """
    try:
        name = psutil.Process(pid).name()
        return name if _is_of_host() or _has_gpu_open(pid) else UNKNOWN_PROCESS
    except (psutil.Error, OSError):
        return UNKNOWN_PROCESS


def _is_of_host() -> bool:
    """Whether process ids mean here what they mean to the driver."""
    return not os.path.lexists(_NAMESPACE) or os.readlink(_NAMESPACE) == _HOST


_NAMESPACE = "/proc/self/ns/pid"


def _has_gpu_open(pid: int) -> bool:
    with os.scandir(f"/proc/{pid}/fd") as files:
        return any(os.readlink(file.path).startswith("/dev/nvidia") for file in files)


def _instances(nvml: Any, gpu: Any) -> tuple[tuple[CountedItem, ...]]:
    """The MIG instances of a GPU, with their memory."""
    current, _ = nvml.nvmlDeviceGetMigMode(gpu)
    if current != nvml.NVML_DEVICE_MIG_ENABLE:
        return ((),)
    return (tuple(_instance(nvml, handle) for handle in _instance_handles(nvml, gpu)),)


def uuids(nvml: Any, gpu: Any) -> tuple[str, ...]:
    """UUIDs of a GPU and its MIG instances."""
    return tuple(device_text(nvml.nvmlDeviceGetUUID, handle) for handle in (gpu, *_instance_handles(nvml, gpu)))


def _instance(nvml: Any, handle: Any) -> CountedItem:
    used = total = None
    with contextlib.suppress(nvml.NVMLError):
        used, total = (int(size) for size in memory(nvml, handle))
    # The full name includes the GPU's: NVIDIA A100-SXM4-40GB MIG 1g.5gb
    name = device_text(nvml.nvmlDeviceGetName, handle).rpartition("MIG ")[2]
    return CountedItem(f"MIG {name}", device_text(nvml.nvmlDeviceGetUUID, handle), used, total)


def _instance_handles(nvml: Any, gpu: Any) -> Iterable[Any]:
    try:
        if nvml.nvmlDeviceGetMigMode(gpu)[0] != nvml.NVML_DEVICE_MIG_ENABLE:
            return
        count = nvml.nvmlDeviceGetMaxMigDeviceCount(gpu)
    except nvml.NVMLError:
        return
    for index in range(min(count, _MAX_INSTANCES)):
        with contextlib.suppress(nvml.NVMLError):  # most slots are empty
            yield nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index)


def device_text(read: Callable[[Any], str | bytes], handle: Any) -> str:
    """Read a text of a device; ``pynvml`` decodes it strictly, and in old versions not at all."""
    try:
        value = read(handle)
    except UnicodeDecodeError as error:
        value = error.object
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _one(name: str, unit: str, read: Callable[[Any, Any], float], interval: float = 0.0) -> Query:
    return Query(((name, unit),), lambda nvml, gpu: (float(read(nvml, gpu)),), interval)


QUERIES = (
    Query((("utilization", "%"), ("memory_utilization", "%")), _utilization),
    Query((("memory_used", "B"), ("memory_total", "B")), memory),
    _one("temperature", "C", lambda nvml, gpu: nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU)),
    _one("power", "W", lambda nvml, gpu: nvml.nvmlDeviceGetPowerUsage(gpu) / 1000),
    _one("clock_sm", "MHz", lambda nvml, gpu: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM)),
    Query((("throttling", ""),), _throttling),
    _one("power_limit", "W", lambda nvml, gpu: nvml.nvmlDeviceGetEnforcedPowerLimit(gpu) / 1000, SLOW_INTERVAL),
    _one("clock_memory", "MHz", lambda nvml, gpu: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_MEM), SLOW_INTERVAL),
    _one("fan", "%", lambda nvml, gpu: nvml.nvmlDeviceGetFanSpeed(gpu), SLOW_INTERVAL),
    _one("pcie_generation", "", lambda nvml, gpu: nvml.nvmlDeviceGetCurrPcieLinkGeneration(gpu), SLOW_INTERVAL),
    _one("pcie_width", "", lambda nvml, gpu: nvml.nvmlDeviceGetCurrPcieLinkWidth(gpu), SLOW_INTERVAL),
    Query((("processes", ""),), _processes, SLOW_INTERVAL),
    # In kilobytes per second. The driver measures for 20 ms or more.
    _one(
        "pcie_received",
        "B/s",
        lambda nvml, gpu: 1000 * nvml.nvmlDeviceGetPcieThroughput(gpu, nvml.NVML_PCIE_UTIL_RX_BYTES),
        RARE_INTERVAL,
    ),
    _one(
        "pcie_sent",
        "B/s",
        lambda nvml, gpu: 1000 * nvml.nvmlDeviceGetPcieThroughput(gpu, nvml.NVML_PCIE_UTIL_TX_BYTES),
        RARE_INTERVAL,
    ),
    # Counts since the driver was loaded.
    _one(
        "ecc_corrected",
        "",
        lambda nvml, gpu: nvml.nvmlDeviceGetTotalEccErrors(
            gpu, nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, nvml.NVML_VOLATILE_ECC
        ),
        RARE_INTERVAL,
    ),
    _one(
        "ecc_uncorrected",
        "",
        lambda nvml, gpu: nvml.nvmlDeviceGetTotalEccErrors(
            gpu, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
        ),
        RARE_INTERVAL,
    ),
    Query((("instances", ""),), _instances, RARE_INTERVAL),
)
"""All queries of a GPU. The values of one query fail together."""


REASONS = {
    "UNINITIALIZED": "the driver's library was closed",
    "NOT_SUPPORTED": "this GPU does not report it",
    "NO_PERMISSION": "requires administrator rights",
    "INSUFFICIENT_POWER": "the GPU's power cables are not all connected",
    "DRIVER_NOT_LOADED": "the NVIDIA driver is not loaded",
    "TIMEOUT": "the driver did not answer in time",
    "LIBRARY_NOT_FOUND": "no NVIDIA driver",
    "FUNCTION_NOT_FOUND": "the NVIDIA driver is too old to report it",
    "GPU_IS_LOST": "lost: it no longer responds on the PCI bus",
    "RESET_REQUIRED": "the GPU must be reset before it can be used again",
    "OPERATING_SYSTEM": "the operating system denies access to the GPU",
    "LIB_RM_VERSION_MISMATCH": "the NVIDIA driver was updated; restart the machine to load the new one",
    "UNKNOWN": "unknown error of the NVIDIA driver",
}
"""Messages by the suffix of NVML's error constants."""

NO_GPU = "the NVIDIA driver finds no GPU"

NVML = "NVML, the driver's monitoring library,"

NVML_PROBLEMS = {REASONS["LIBRARY_NOT_FOUND"]: f"{NVML} is missing", NO_GPU: f"{NVML} lists no GPU"}
"""The problem of a GPU that was found without NVML, by a reason that usually means that there is no GPU."""

_THROTTLE_REASONS = (
    (0x40, "thermal slowdown"),
    (0x20, "software thermal slowdown"),
    (0x80, "power brake slowdown"),
    (0x04, "power limit"),
    (0x200, "board limit"),
    (0x400, "reliability limit"),
    (0x10, "sync boost with a slower GPU"),
    (0x02, "clocks set by an administrator"),
    (0x100, "display clocks"),
)
"""Bits of NVML's clocks event reasons, most severe first. Bit 1, idle, is not throttling."""

_HARDWARE_SLOWDOWN = 0x08
"""Set together with the thermal or the power brake bit, or alone by old GPUs."""


def error_reason(nvml: Any, error: Any) -> str:
    """The message of an NVML error; NVML's own if it is not known here."""
    messages = {getattr(nvml, f"NVML_ERROR_{name}"): message for name, message in REASONS.items()}
    return messages.get(error.value) or f"the NVIDIA driver reports: {error}"


def _throttle_reasons(bits: int) -> tuple[CountedItem, ...]:
    """List what throttles a GPU's clocks, most severe first; empty if nothing does or it is idle.

    Args:
        bits: NVML's clocks event reasons.
    """
    reasons = [reason for bit, reason in _THROTTLE_REASONS if bits & bit]
    if bits & _HARDWARE_SLOWDOWN and not bits & (0x40 | 0x80):
        reasons.insert(0, "hardware slowdown (temperature or power)")
    return tuple(CountedItem(each) for each in reasons)
