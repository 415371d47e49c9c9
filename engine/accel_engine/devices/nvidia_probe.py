"""NVIDIA GPUs, through the driver's management library (NVML)."""

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from accel_engine import clock
from accel_engine.devices.nvidia_gpu import GpuProbe
from accel_engine.devices.nvidia_messages import reason
from accel_engine.devices.probe_thread import ProbeThread
from accel_engine.devices.reading import Inventory, Reading, Sample, UnavailableKind

INVENTORY_PATIENCE = 5.0
"""Seconds that all GPUs together may take to say what they are; the driver may have to wake them."""

PATIENCE = 0.3
"""Seconds that GPUs are waited for at a sample; less than half of the sampler's interval."""


class NvidiaProbe:
    """Finds NVIDIA GPUs and reads them, each in a thread of its own: one that hangs costs only itself.

    GPUs are numbered as NVML does, in the order of their PCI bus ids, whatever
    ``CUDA_VISIBLE_DEVICES`` hides. The library is loaded when it is first asked for.

    Args:
        sysfs: Where the kernel shows its devices.
        clock: Tells the time in seconds; it says when what is asked seldom is asked again.
    """

    kind = "gpu"

    def __init__(self, sysfs: Path = Path("/sys"), clock: Callable[[], float] = time.monotonic) -> None:
        self._sysfs = sysfs
        self._clock = clock
        self._nvml: Any = None
        self._news = threading.Condition()
        self._gpus: tuple[GpuProbe, ...] = ()
        self._threads: tuple[ProbeThread, ...] = ()

    def inventory(self) -> Inventory:
        """Find the GPUs, or say why there are none."""
        import pynvml  # not before it is needed: most of its cost is spared where nothing samples

        try:
            if self._nvml is None:
                pynvml.nvmlInit()
                self._nvml = pynvml
            count = pynvml.nvmlDeviceGetCount()
        except pynvml.NVMLError as error:
            return Inventory((), (UnavailableKind("gpu", reason(pynvml, error)),))
        if not count:
            return Inventory((), (UnavailableKind("gpu", "the NVIDIA driver sees no GPU"),))
        if not self._threads:
            self._gpus = tuple(GpuProbe(pynvml, index, self._sysfs, self._clock) for index in range(count))
            self._threads = tuple(ProbeThread(gpu, self._news) for gpu in self._gpus)
        self._wait(lambda: all(thread.inventory for thread in self._threads), INVENTORY_PATIENCE)
        return Inventory(tuple(gpu.device for gpu in self._gpus))

    def sample(self) -> tuple[Sample, ...]:
        """Read every GPU that is awake, at once; one that does not answer in time has readings that say so."""
        asked = [thread for thread in self._threads if thread.ask()]
        self._wait(lambda: not any(thread.busy for thread in asked), PATIENCE)
        return tuple(
            sample
            for gpu, thread in zip(self._gpus, self._threads, strict=True)
            for sample in thread.take() or (_silent(gpu.device.id),)
        )

    def close(self) -> None:
        """Let go of the driver's library."""
        for thread in self._threads:
            thread.end()
        if self._nvml is not None:
            with contextlib.suppress(self._nvml.NVMLError):
                self._nvml.nvmlShutdown()
        self._nvml = None
        self._gpus = self._threads = ()

    def _wait(self, condition: Callable[[], bool], patience: float) -> None:
        with self._news:
            self._news.wait_for(condition, patience)


def _silent(device: str) -> Sample:
    """A sample of a GPU that has not even said what it is."""
    return Sample(clock.now(), device, {"utilization": Reading.missing("the driver has not told of it yet", "%")})
