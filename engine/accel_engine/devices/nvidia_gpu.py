"""Finds, describes and reads NVIDIA GPUs through the driver's management library (NVML)."""

import contextlib
import math
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from accel_engine import clock
from accel_engine.devices.device_types import ASLEEP, CountedItem, Device, Inventory, Reading, Sample, UnavailableKind
from accel_engine.devices.nvidia_queries import NO_GPU, QUERIES, Query, device_text, error_reason, memory, uuids
from accel_engine.devices.pci_address import normalize_bus_id
from accel_engine.devices.probe_thread import ProbeThread
from accel_engine.devices.xid import error_text

_MIG_REASON = "not reported while the GPU is split into MIG instances"


class GpuProbe:
    """Describes and reads one GPU.

    Readings with a longer interval are repeated in the samples in between; GPUs take turns reading these.

    Args:
        nvml: The initialised ``pynvml`` module.
        index: NVML's index of the GPU.
        sysfs: Path of ``/sys``.
        clock: Returns the time in seconds.
        watches_errors: Whether the driver is asked to report errors (Xid).
    """

    kind = "gpu"

    def __init__(
        self,
        nvml: Any,
        index: int,
        sysfs: Path,
        clock: Callable[[], float] = time.monotonic,
        *,
        watches_errors: bool = False,
    ) -> None:
        self.device = Device(f"gpu:{index}", "gpu", "NVIDIA GPU", problem="the driver does not respond")
        self._nvml = nvml
        self._index = index
        self._sysfs = sysfs
        self._clock = clock
        self._handle: Any = None
        self._readings: dict[str, Reading] = {}
        self._due = [-math.inf] * len(QUERIES)
        self._watches_errors = watches_errors
        self._events: Any = None
        self._errors: tuple[CountedItem, ...] = ()

    def inventory(self) -> Inventory:
        """Describe the GPU; one that does not respond, or that this user may not use, is listed with the reason."""
        nvml = self._nvml
        known: dict[str, Any] = {"name": self.device.name}
        try:
            handle = self._open()
            with contextlib.suppress(nvml.NVMLError):
                known["name"] = device_text(nvml.nvmlDeviceGetName, handle)
            known |= self._memory(handle)
            with contextlib.suppress(nvml.NVMLError):
                known["uuids"] = uuids(nvml, handle)
            known["address"] = normalize_bus_id(device_text(lambda gpu: nvml.nvmlDeviceGetPciInfo(gpu).busId, handle))
        except nvml.NVMLError as error:
            if error.value != nvml.NVML_ERROR_NOT_SUPPORTED:  # a Jetson's is on no PCI bus
                known["problem"] = error_reason(nvml, error)
        self.device = Device(self.device.id, "gpu", **known)
        return Inventory((self.device,))

    def _memory(self, handle: Any) -> dict[str, Any]:
        """Its memory: the driver does not report it for a GPU which shares the host's."""
        try:
            used, total = map(int, memory(self._nvml, handle))
            return {"memory": total, "free": total - used}
        except self._nvml.NVMLError as error:
            unified = error.value == self._nvml.NVML_ERROR_NOT_SUPPORTED
            return {"memory": psutil.virtual_memory().total, "unified": True} if unified else {}

    def sample(self) -> tuple[Sample, ...]:
        """Read the GPU, unless it is suspended."""
        if self._is_suspended():
            self._set_all_missing(ASLEEP)
        else:
            if self._watches_errors:
                self._read_errors()
            self._run_due_queries()
        return (Sample(clock.now(), self.device.id, dict(self._readings)),)

    def close(self) -> None:
        """Release the handle; the owner closes the library, which frees the events."""
        self._handle = self._events = None

    def _read_errors(self) -> None:
        """Add the errors that the driver has reported since the last sample to the reading ``errors``."""
        nvml = self._nvml
        try:
            if self._events is None:
                events = nvml.nvmlEventSetCreate()
                nvml.nvmlDeviceRegisterEvents(self._open(), nvml.nvmlEventTypeXidCriticalError, events)
                self._events = events
            while len(self._errors) < MOST_ERRORS:
                number = int(nvml.nvmlEventSetWait_v2(self._events, 0).eventData)
                self._errors += (CountedItem(error_text(number), str(number)),)
                self._readings["errors"] = Reading.counted(self._errors)
        except nvml.NVMLError as error:
            self._watches_errors = error.value == nvml.NVML_ERROR_TIMEOUT  # nothing new; else nothing will come

    def _run_due_queries(self) -> None:
        now = self._clock()
        for number, query in enumerate(QUERIES):
            if now < self._due[number]:
                continue
            try:
                values = query.read(self._nvml, self._open())
            except self._nvml.NVMLError as error:
                reason = error_reason(self._nvml, error)
                if error.value == self._nvml.NVML_ERROR_GPU_IS_LOST:
                    self._set_all_missing(reason)
                    return  # the driver would wait for the GPU at every further query
                self._set_missing(query, _MIG_REASON if self._is_hidden_by_mig(query, error) else reason)
            else:
                for (name, unit), value in zip(query.units, values, strict=True):
                    self._readings[name] = Reading.counted(value) if isinstance(value, tuple) else Reading(value, unit)
            self._due[number] = _next_due(now, query.interval, self._index)

    def _open(self) -> Any:
        if self._handle is None:
            self._handle = self._nvml.nvmlDeviceGetHandleByIndex(self._index)
        return self._handle

    def _set_missing(self, query: Query, reason: str) -> None:
        self._readings |= {name: Reading.missing(reason, unit) for name, unit in query.units}

    def _set_all_missing(self, reason: str) -> None:
        """Set all readings but errors to missing, with the last error, and start over when the GPU is back."""
        if self._errors and reason != ASLEEP:
            reason = f"{reason}, after {self._errors[-1].name}"
        for query in QUERIES:
            self._set_missing(query, reason)
        self._handle = None
        self._due = [-math.inf] * len(QUERIES)

    def _is_hidden_by_mig(self, query: Query, error: Any) -> bool:
        instances = self._readings.get("instances")
        return (
            query.units[0][0] == "utilization"
            and error.value == self._nvml.NVML_ERROR_NOT_SUPPORTED
            and instances is not None
            and bool(instances.value)
        )

    def _is_suspended(self) -> bool:
        """Whether an idle laptop GPU is suspended; reading sysfs does not wake it."""
        if not self.device.address:
            return False
        status = self._sysfs / "bus/pci/devices" / self.device.address / "power/runtime_status"
        try:
            return status.read_text().strip() == "suspended"
        except OSError:
            return False


def _next_due(now: float, interval: float, offset: int) -> float:
    """The next time of a query, shifted by ``offset`` seconds, so that not all GPUs are read at once."""
    return interval * (math.floor((now - offset) / interval) + 1) + offset if interval else -math.inf


MOST_ERRORS = 100
"""Errors of a GPU that are kept; a broken one may report thousands."""

GPU_DESCRIPTION_TIMEOUT = 5.0
"""Seconds to wait for all GPUs to be described; the driver may have to wake them."""

SAMPLE_TIMEOUT = 0.3
"""Seconds to wait for all GPUs at a sample; less than half of the sampler's interval."""


class NvidiaProbe:
    """Finds NVIDIA GPUs and reads each in a separate thread, so that one that hangs does not block the others.

    GPUs have NVML's indexes, in the order of their PCI bus ids, regardless of ``CUDA_VISIBLE_DEVICES``. The library is
    loaded on first use.

    Args:
        sysfs: Path of ``/sys``.
        clock: Returns the time in seconds, for the intervals of queries.
        watches_errors: As in :class:`GpuProbe`.
    """

    kind = "gpu"

    def __init__(
        self,
        sysfs: Path = Path("/sys"),
        clock: Callable[[], float] = time.monotonic,
        *,
        watches_errors: bool = False,
    ) -> None:
        self._sysfs = sysfs
        self._watches_errors = watches_errors
        self._clock = clock
        self._nvml: Any = None
        self._changed = threading.Condition()
        self._gpus: tuple[GpuProbe, ...] = ()
        self._threads: tuple[ProbeThread, ...] = ()

    def inventory(self) -> Inventory:
        """Find the GPUs, or the reason why there are none."""
        import pynvml  # not above: it is slow to import

        try:
            if self._nvml is None:
                pynvml.nvmlInit()
                self._nvml = pynvml
            count = pynvml.nvmlDeviceGetCount()
        except pynvml.NVMLError as error:
            return Inventory((), (UnavailableKind("gpu", error_reason(pynvml, error)),))
        if not count:
            return Inventory((), (UnavailableKind("gpu", NO_GPU),))
        if not self._threads:
            self._gpus = tuple(
                GpuProbe(pynvml, index, self._sysfs, self._clock, watches_errors=self._watches_errors)
                for index in range(count)
            )
            self._threads = tuple(ProbeThread(gpu, self._changed) for gpu in self._gpus)
        self._wait(lambda: all(thread.inventory for thread in self._threads), GPU_DESCRIPTION_TIMEOUT)
        return Inventory(tuple(gpu.device for gpu in self._gpus))

    def sample(self) -> tuple[Sample, ...]:
        """Read all GPUs in parallel; the readings of one that does not respond in time are missing."""
        requested = [thread for thread in self._threads if thread.request()]
        self._wait(lambda: not any(thread.busy for thread in requested), SAMPLE_TIMEOUT)
        return tuple(
            sample
            for gpu, thread in zip(self._gpus, self._threads, strict=True)
            for sample in thread.take() or (_not_yet_described(gpu.device.id),)
        )

    def close(self) -> None:
        """Close the driver's library."""
        for thread in self._threads:
            thread.stop()
        if self._nvml is not None:
            with contextlib.suppress(self._nvml.NVMLError):
                self._nvml.nvmlShutdown()
        self._nvml = None
        self._gpus = self._threads = ()

    def _wait(self, condition: Callable[[], bool], timeout: float) -> None:
        with self._changed:
            self._changed.wait_for(condition, timeout)


def _not_yet_described(device: str) -> Sample:
    return Sample(clock.now(), device, {"utilization": Reading.missing("the driver has not responded yet", "%")})
