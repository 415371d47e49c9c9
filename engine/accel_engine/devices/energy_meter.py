"""Measures the energy that an NVIDIA GPU takes, by the driver's management library (NVML)."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any, Protocol

from accel_engine.devices.nvidia_queries import device_text
from accel_engine.devices.pci_address import normalize_bus_id

INTERVAL = 0.05
"""Seconds between readings of the power, where the driver does not count energy."""


class IntervalMeter(Protocol):
    """Measures something between two points in time."""

    def start(self) -> None:
        """Begin."""

    def stop(self) -> float | None:
        """What was measured since; ``None`` if it cannot be read."""


class EnergyMeter:
    """Measures joules between :meth:`start` and :meth:`stop`.

    GPUs since Volta count their energy; of others, the power is read now and then and integrated.

    Args:
        nvml: The initialised ``pynvml`` module.
        handle: The GPU's handle.
        clock: Returns the time in seconds.
    """

    def __init__(self, nvml: Any, handle: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self._nvml = nvml
        self._handle = handle
        self._clock = clock
        self._begin: float | None = None
        self._readings: list[tuple[float, float]] = []
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to measure."""
        self._begin, self._readings = self._counted(), []
        if self._begin is None:
            self._ended.clear()
            self._thread = threading.Thread(target=self._read_power, name="energy", daemon=True)
            self._thread.start()

    def stop(self) -> float | None:
        """Joules since :meth:`start`; ``None`` if the driver has neither energy nor power."""
        if self._begin is not None:
            end = self._counted()
            return None if end is None else end - self._begin
        self._ended.set()
        if self._thread:
            self._thread.join()
            self._thread = None
        self._read_once()
        return joules(self._readings)

    def _counted(self) -> float | None:
        with suppress(self._nvml.NVMLError):
            return float(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)) / 1000
        return None

    def _read_power(self) -> None:
        self._read_once()
        while not self._ended.wait(INTERVAL):
            self._read_once()

    def _read_once(self) -> None:
        with suppress(self._nvml.NVMLError):
            watts = float(self._nvml.nvmlDeviceGetPowerUsage(self._handle)) / 1000
            self._readings.append((self._clock(), watts))


def joules(readings: list[tuple[float, float]]) -> float | None:
    """Integrate powers by the trapezoidal rule; ``None`` for fewer than two.

    Args:
        readings: Seconds and watts, in order.
    """
    if len(readings) < 2:
        return None
    steps = pairwise(readings)
    return sum((after - before) * (first + second) / 2 for (before, first), (after, second) in steps)


def energy_meter(bus_id: str) -> EnergyMeter | None:
    """The meter of the GPU with a PCI bus id; ``None`` if the driver has none."""
    import pynvml  # not above: it is slow to import

    with suppress(pynvml.NVMLError):
        pynvml.nvmlInit()
        wanted = normalize_bus_id(bus_id)
        for index in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            if normalize_bus_id(device_text(lambda gpu: pynvml.nvmlDeviceGetPciInfo(gpu).busId, handle)) == wanted:
                return EnergyMeter(pynvml, handle)
    return None
