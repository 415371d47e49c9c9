"""One NVIDIA GPU: what it is, and its readings, each on its own."""

import contextlib
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from accel_engine import clock
from accel_engine.devices.nvidia_messages import reason
from accel_engine.devices.nvidia_queries import QUERIES, Query, memory, text, uuids
from accel_engine.devices.pci_address import normalise
from accel_engine.devices.reading import Device, Inventory, Reading, Sample

_ASLEEP = "asleep to save power; reading would wake it"

_SPLIT = "not told while the GPU is split into instances (MIG)"


class GpuProbe:
    """Describes and reads one GPU.

    What is asked seldom is repeated in the samples between; GPUs take turns with it.

    Args:
        nvml: The binding, initialised.
        index: The GPU's, as NVML counts.
        sysfs: Where the kernel shows its devices.
        clock: Tells the time in seconds.
    """

    kind = "gpu"

    def __init__(self, nvml: Any, index: int, sysfs: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.device = Device(f"gpu:{index}", "gpu", "NVIDIA GPU")
        self._nvml = nvml
        self._index = index
        self._sysfs = sysfs
        self._clock = clock
        self._handle: Any = None
        self._readings: dict[str, Reading] = {}
        self._due = [-math.inf] * len(QUERIES)

    def inventory(self) -> Inventory:
        """Say what the GPU is; one that does not answer is listed too, so that it is missed."""
        nvml = self._nvml
        known: dict[str, Any] = {"name": self.device.name}
        with contextlib.suppress(nvml.NVMLError):
            handle = self._open()
            with contextlib.suppress(nvml.NVMLError):
                known["name"] = text(nvml.nvmlDeviceGetName(handle))
            with contextlib.suppress(nvml.NVMLError):
                known["memory"] = int(memory(nvml, handle)[1])
            with contextlib.suppress(nvml.NVMLError):
                known["address"] = normalise(text(nvml.nvmlDeviceGetPciInfo(handle).busId))
            with contextlib.suppress(nvml.NVMLError):
                known["uuids"] = uuids(nvml, handle)
        self.device = Device(self.device.id, "gpu", **known)
        return Inventory((self.device,))

    def sample(self) -> tuple[Sample, ...]:
        """Read the GPU if it is awake."""
        if self._sleeps():
            self._miss_all(_ASLEEP)
        else:
            self._ask_what_is_due()
        return (Sample(clock.now(), self.device.id, dict(self._readings)),)

    def close(self) -> None:
        """Forget the GPU; the library is its owner's to close."""
        self._handle = None

    def _ask_what_is_due(self) -> None:
        now = self._clock()
        for number, query in enumerate(QUERIES):
            if now < self._due[number]:
                continue
            try:
                answers = query.ask(self._nvml, self._open())
            except self._nvml.NVMLError as error:
                why = reason(self._nvml, error)
                if error.value == self._nvml.NVML_ERROR_GPU_IS_LOST:
                    self._miss_all(why)
                    return  # every further question would keep the driver waiting for it
                self._miss(query, _SPLIT if self._is_split(query, error) else why)
            else:
                for (name, unit), answer in zip(query.units, answers, strict=True):
                    self._readings[name] = (
                        Reading.counted(answer) if isinstance(answer, tuple) else Reading(answer, unit)
                    )
            self._due[number] = _next(now, query.every, self._index)

    def _open(self) -> Any:
        if self._handle is None:
            self._handle = self._nvml.nvmlDeviceGetHandleByIndex(self._index)
        return self._handle

    def _miss(self, query: Query, why: str) -> None:
        self._readings |= {name: Reading.missing(why, unit) for name, unit in query.units}

    def _miss_all(self, why: str) -> None:
        """Have no reading at all, and begin afresh when the GPU is back."""
        for query in QUERIES:
            self._miss(query, why)
        self._handle = None
        self._due = [-math.inf] * len(QUERIES)

    def _is_split(self, query: Query, error: Any) -> bool:
        instances = self._readings.get("instances")
        return (
            query.units[0][0] == "utilization"
            and error.value == self._nvml.NVML_ERROR_NOT_SUPPORTED
            and instances is not None
            and bool(instances.value)
        )

    def _sleeps(self) -> bool:
        """Whether a laptop's GPU is switched off while idle; asking the kernel does not wake it."""
        if not self.device.address:
            return False
        status = self._sysfs / "bus/pci/devices" / self.device.address / "power/runtime_status"
        try:
            return status.read_text().strip() == "suspended"
        except OSError:
            return False


def _next(now: float, every: float, turn: int) -> float:
    """When something is to be asked again, so that those of different turns do not all ask at once."""
    return every * (math.floor((now - turn) / every) + 1) + turn if every else -math.inf
