"""Queries the NVIDIA driver for its version and GPUs."""

import contextlib
from dataclasses import dataclass

from accel_engine.devices.device_types import Device
from accel_engine.devices.nvidia_probe import NvidiaProbe
from accel_engine.doctor.time_limit import call_in_thread

DRIVER_TIMEOUT = 20.0
"""Timeout in seconds: waking eight GPUs takes several."""


@dataclass(frozen=True, slots=True)
class Driver:
    """The NVIDIA driver.

    Attributes:
        version: Its version; empty if no driver responds.
        cuda: The newest CUDA version that it supports, e.g. ``(12, 8)``; ``(0, 0)`` if unknown.
        gpus: Its GPUs, regardless of ``CUDA_VISIBLE_DEVICES``.
        memory_shares: Pairs of a GPU's id and the share of its memory in use.
        problem: Why it finds no GPU.
        timed_out: Whether it did not respond in time.
    """

    version: str = ""
    cuda: tuple[int, int] = (0, 0)
    gpus: tuple[Device, ...] = ()
    memory_shares: tuple[tuple[str, float], ...] = ()
    problem: str = ""
    timed_out: bool = False


def query_driver(timeout: float = DRIVER_TIMEOUT) -> Driver:
    """Query the driver.

    Args:
        timeout: Seconds to wait; if the driver hangs, its thread is abandoned.
    """
    try:
        return call_in_thread(_query, "query-driver").result(timeout)
    except TimeoutError:
        return Driver(problem=f"the NVIDIA driver does not respond within {timeout:g} s", timed_out=True)


def _query() -> Driver:
    probe = NvidiaProbe()
    try:
        inventory = probe.inventory()
        shares = []
        for sample in probe.sample():
            used, total = (sample.readings.get(name) for name in ("memory_used", "memory_total"))
            if used and total and used.value is not None and total.value:
                shares.append((sample.device, used.value / total.value))
        version, cuda = _versions()
        problem = " ".join(kind.reason for kind in inventory.unavailable)
        return Driver(version, cuda, inventory.devices, tuple(shares), problem)
    finally:
        probe.close()


def _versions() -> tuple[str, tuple[int, int]]:
    """The driver's version, and the newest CUDA version that it supports; call it while the library is open."""
    import pynvml

    version, cuda = "", 0
    with contextlib.suppress(pynvml.NVMLError):
        raw = pynvml.nvmlSystemGetDriverVersion()
        version = raw.decode(errors="replace") if isinstance(raw, bytes) else raw
        cuda = pynvml.nvmlSystemGetCudaDriverVersion_v2()
    return version, (cuda // 1000, cuda % 1000 // 10)
