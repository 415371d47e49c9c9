"""Whether another process of a race fits in memory beside those that run."""

from collections.abc import Callable
from dataclasses import dataclass

import psutil

from accel_engine.launch.trial_room import CONTEXT
from accel_engine.memory import available_memory

MARGIN = 1.3
"""How much more than the reference a way may take."""

DEVICE_SHARE = 0.9
"""The share of a device's memory that processes may take together."""

MOST_AT_ONCE = 6
"""Ways that take turns, beside the reference, however much memory there is: a round should be short."""


@dataclass(frozen=True, slots=True)
class Room:
    """The memory that ways may take together.

    Attributes:
        device_memory: Bytes of the device that trains; ``None`` for a CPU.
        is_exclusive: Whether only one process at a time can use the device.
        available: Tells the free bytes of this machine.
    """

    device_memory: int | None = None
    is_exclusive: bool = False
    available: Callable[[], int] = available_memory

    def fits(self, running: int, host: float, device: float | None, factor: float) -> bool:
        """Whether another way fits.

        Args:
            running: Number of processes that run.
            host: Resident bytes of the reference's process.
            device: Bytes that it has on its device; ``None`` if unknown, or on a CPU.
            factor: By how much larger the batches of the way are.
        """
        if self.is_exclusive or running > MOST_AT_ONCE:
            return False
        if MARGIN * host * max(1.0, factor) > self.available():
            return False
        if self.device_memory is None:
            return True
        if device is None:
            return False
        needed = running * (device + CONTEXT) + MARGIN * device * max(1.0, factor) + CONTEXT
        return needed <= DEVICE_SHARE * self.device_memory


def resident_bytes(pid: int) -> float:
    """The resident memory of a process; 0 if it has exited."""
    try:
        return float(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0.0
