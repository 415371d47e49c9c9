"""NVIDIA GPUs, through the driver's management library (NVML)."""

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accel_engine.devices.address import normalise
from accel_engine.devices.reading import Absence, Device, Inventory, Reading, Sample

_ASLEEP = "asleep to save power; reading would wake it"


@dataclass(frozen=True, slots=True)
class _Query:
    """One question to the driver.

    Attributes:
        units: The readings that the answer gives, by name in order, and their units.
        ask: Takes the binding and a GPU's handle; gives as many values as there are units.
    """

    units: Mapping[str, str]
    ask: Callable[[Any, Any], tuple[float, ...]]


def _memory(nvml: Any, handle: Any) -> tuple[float, float]:
    try:
        # The second version leaves out what the driver reserves for itself, as nvidia-smi does.
        memory = nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
    except nvml.NVMLError:
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    return float(memory.used), float(memory.total)


_QUERIES = (
    _Query({"utilization": "%"}, lambda nvml, gpu: (float(nvml.nvmlDeviceGetUtilizationRates(gpu).gpu),)),
    _Query({"memory_used": "B", "memory_total": "B"}, _memory),
    _Query(
        {"temperature": "C"},
        lambda nvml, gpu: (float(nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU)),),
    ),
    _Query({"power": "W"}, lambda nvml, gpu: (nvml.nvmlDeviceGetPowerUsage(gpu) / 1000,)),
)

_REASONS = {
    "UNINITIALIZED": "the driver's library was closed",
    "NOT_SUPPORTED": "this GPU does not report it",
    "NO_PERMISSION": "only an administrator may read it",
    "INSUFFICIENT_POWER": "the GPU's power cables are not all connected",
    "DRIVER_NOT_LOADED": "the NVIDIA driver is not loaded",
    "TIMEOUT": "the driver did not answer in time",
    "LIBRARY_NOT_FOUND": "no NVIDIA driver",
    "FUNCTION_NOT_FOUND": "the NVIDIA driver is too old to report it",
    "GPU_IS_LOST": "the GPU is lost: it no longer answers on its bus",
    "RESET_REQUIRED": "the GPU must be reset before it can be used again",
    "OPERATING_SYSTEM": "the operating system forbids access to the GPU",
    "LIB_RM_VERSION_MISMATCH": "the NVIDIA driver was updated; restart the machine to load the new one",
    "UNKNOWN": "the NVIDIA driver failed without saying why",
}
"""What NVML's errors mean to a user, by the end of their constants' names."""


class NvidiaProbe:
    """Finds NVIDIA GPUs and reads them, each field on its own.

    GPUs are numbered as NVML does, in the order of their PCI bus ids, whatever
    ``CUDA_VISIBLE_DEVICES`` hides. The library is loaded when it is first asked for.

    Args:
        sysfs: Where the kernel shows its devices.
    """

    kind = "gpu"

    def __init__(self, sysfs: Path = Path("/sys")) -> None:
        self._sysfs = sysfs
        self._nvml: Any = None
        self._devices: tuple[Device, ...] = ()
        self._handles: dict[str, Any] = {}

    def inventory(self) -> Inventory:
        """Find the GPUs, or say why there are none."""
        import pynvml  # not before it is needed: most of its cost is spared where nothing samples

        try:
            if self._nvml is None:
                pynvml.nvmlInit()
                self._nvml = pynvml
            count = pynvml.nvmlDeviceGetCount()
        except pynvml.NVMLError as error:
            return Inventory((), (Absence("gpu", _reason(pynvml, error)),))
        self._devices = tuple(self._describe(index) for index in range(count))
        absences = () if count else (Absence("gpu", "the NVIDIA driver sees no GPU"),)
        return Inventory(self._devices, absences)

    def sample(self) -> tuple[Sample, ...]:
        """Read every GPU that is awake."""
        return tuple(Sample(time.time(), device.id, self._read(device)) for device in self._devices)

    def close(self) -> None:
        """Let go of the driver's library."""
        if self._nvml is not None:
            with contextlib.suppress(self._nvml.NVMLError):
                self._nvml.nvmlShutdown()
        self._nvml = None
        self._devices = ()
        self._handles.clear()

    def _describe(self, index: int) -> Device:
        """What a GPU is; one that does not answer is listed too, so that it is missed."""
        nvml, name = self._nvml, f"gpu:{index}"
        known: dict[str, Any] = {}
        with contextlib.suppress(nvml.NVMLError):
            self._handles[name] = nvml.nvmlDeviceGetHandleByIndex(index)
            with contextlib.suppress(nvml.NVMLError):
                known["name"] = _text(nvml.nvmlDeviceGetName(self._handles[name]))
            with contextlib.suppress(nvml.NVMLError):
                known["memory"] = int(_memory(nvml, self._handles[name])[1])
            with contextlib.suppress(nvml.NVMLError):
                known["address"] = normalise(_text(nvml.nvmlDeviceGetPciInfo(self._handles[name]).busId))
        return Device(name, "gpu", **{"name": "NVIDIA GPU", **known})

    def _read(self, device: Device) -> dict[str, Reading]:
        if self._sleeps(device):
            return {name: Reading.missing(_ASLEEP, unit) for query in _QUERIES for name, unit in query.units.items()}
        readings: dict[str, Reading] = {}
        for query in _QUERIES:
            try:
                values = query.ask(self._nvml, self._handle(device.id))
            except self._nvml.NVMLError as error:
                reason = _reason(self._nvml, error)
                readings |= {name: Reading.missing(reason, unit) for name, unit in query.units.items()}
            else:
                pairs = zip(query.units.items(), values, strict=True)
                readings |= {name: Reading(value, unit) for (name, unit), value in pairs}
        return readings

    def _handle(self, name: str) -> Any:
        if name not in self._handles:
            self._handles[name] = self._nvml.nvmlDeviceGetHandleByIndex(int(name.removeprefix("gpu:")))
        return self._handles[name]

    def _sleeps(self, device: Device) -> bool:
        """Whether a laptop's GPU is switched off while idle; asking the kernel does not wake it."""
        status = self._sysfs / "bus/pci/devices" / device.address / "power/runtime_status"
        try:
            return bool(device.address) and status.read_text().strip() == "suspended"
        except OSError:
            return False


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _reason(nvml: Any, error: Any) -> str:
    """An error of NVML in the user's words, or else in NVML's own."""
    meanings = {getattr(nvml, f"NVML_ERROR_{name}"): words for name, words in _REASONS.items()}
    return meanings.get(error.value) or f"the NVIDIA driver says: {error}"
