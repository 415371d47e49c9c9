"""Finds and reads NVIDIA GPUs through the driver's management library (NVML)."""

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from accel_engine import clock
from accel_engine.devices.device_types import Inventory, Reading, Sample, UnavailableKind
from accel_engine.devices.nvidia_gpu import GpuProbe
from accel_engine.devices.nvidia_messages import error_reason
from accel_engine.devices.probe_thread import ProbeThread

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
    """

    kind = "gpu"

    def __init__(self, sysfs: Path = Path("/sys"), clock: Callable[[], float] = time.monotonic) -> None:
        self._sysfs = sysfs
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
            return Inventory((), (UnavailableKind("gpu", "the NVIDIA driver finds no GPU"),))
        if not self._threads:
            self._gpus = tuple(GpuProbe(pynvml, index, self._sysfs, self._clock) for index in range(count))
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
