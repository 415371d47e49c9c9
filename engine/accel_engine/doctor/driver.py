"""What the NVIDIA driver says of itself and of its GPUs."""

import contextlib
from dataclasses import dataclass

from accel_engine.devices.nvidia import NvidiaProbe
from accel_engine.devices.reading import Device


@dataclass(frozen=True, slots=True)
class Driver:
    """The NVIDIA driver.

    Attributes:
        version: Its version; empty when there is none that answers.
        cuda: The newest CUDA that it can run, as ``(12, 8)``; ``(0, 0)`` when it does not say.
        gpus: The GPUs that it sees, whatever ``CUDA_VISIBLE_DEVICES`` hides.
        taken: Share of its memory that is in use, by the id of the GPU.
        problem: Why it sees none.
    """

    version: str = ""
    cuda: tuple[int, int] = (0, 0)
    gpus: tuple[Device, ...] = ()
    taken: tuple[tuple[str, float], ...] = ()
    problem: str = ""


def ask_driver() -> Driver:
    """Ask the driver; it may hang, if the driver does."""
    probe = NvidiaProbe()
    try:
        inventory = probe.inventory()
        taken = []
        for sample in probe.sample():
            used, total = (sample.readings.get(name) for name in ("memory_used", "memory_total"))
            if used and total and used.value is not None and total.value:
                taken.append((sample.device, used.value / total.value))
        version, cuda = _versions()
        problem = " ".join(absence.reason for absence in inventory.absences)
        return Driver(version, cuda, inventory.devices, tuple(taken), problem)
    finally:
        probe.close()


def _versions() -> tuple[str, tuple[int, int]]:
    """The driver's version, and the newest CUDA that it can run; while the library is open."""
    import pynvml

    version, cuda = "", 0
    with contextlib.suppress(pynvml.NVMLError):
        told = pynvml.nvmlSystemGetDriverVersion()
        version = told.decode(errors="replace") if isinstance(told, bytes) else told
        cuda = pynvml.nvmlSystemGetCudaDriverVersion_v2()
    return version, (cuda // 1000, cuda % 1000 // 10)
