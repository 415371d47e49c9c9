"""What the NVIDIA driver says of itself and of its GPUs."""

import contextlib
import queue
import threading
from dataclasses import dataclass

from accel_engine.devices.nvidia_probe import NvidiaProbe
from accel_engine.devices.reading import Device

PATIENCE = 20.0
"""Seconds that the driver may take: to wake eight GPUs takes several."""


@dataclass(frozen=True, slots=True)
class Driver:
    """The NVIDIA driver.

    Attributes:
        version: Its version; empty when there is none that answers.
        cuda: The newest CUDA that it can run, as ``(12, 8)``; ``(0, 0)`` when it does not say.
        gpus: The GPUs that it sees, whatever ``CUDA_VISIBLE_DEVICES`` hides.
        taken: Share of its memory that is in use, by the id of the GPU.
        problem: Why it sees none.
        late: Whether it did not answer in time.
    """

    version: str = ""
    cuda: tuple[int, int] = (0, 0)
    gpus: tuple[Device, ...] = ()
    taken: tuple[tuple[str, float], ...] = ()
    problem: str = ""
    late: bool = False


def ask_driver(patience: float = PATIENCE) -> Driver:
    """Ask the driver.

    Args:
        patience: Seconds that it may take; what it is asked in is left behind if it hangs.
    """
    answers: queue.SimpleQueue[Driver | Exception] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(_ask())
        except Exception as error:  # noqa: BLE001 (raised again where it is waited for)
            answers.put(error)

    threading.Thread(target=ask, name="ask-driver", daemon=True).start()
    try:
        answer = answers.get(timeout=patience)
    except queue.Empty:
        return Driver(problem=f"the NVIDIA driver does not answer within {patience:g} s", late=True)
    if isinstance(answer, Exception):
        raise answer
    return answer


def _ask() -> Driver:
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
