"""Whether another process of a race fits in memory beside those that run."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import psutil

from accel_engine.measure.trial_room import CONTEXT
from accel_engine.memory import available_memory
from accel_engine.words import numbers

MARGIN = 1.3
"""How much more than the reference a configuration may take."""

DEVICE_SHARE = 0.9
"""The share of a device's memory that processes may take together."""

MAX_CONCURRENT = 6
"""Configurations that take turns, beside the reference, however much memory there is: a round should be short."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The memory of a configuration.

    Attributes:
        resident: Resident bytes of its processes.
        grown: Bytes of them that they have taken since they were started, as far as they are known.
        device: Bytes on its accelerator; ``None`` if unknown, or on a CPU.
    """

    resident: float
    grown: float = 0.0
    device: float | None = None


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """The memory that configurations may take together.

    Attributes:
        device_memory: Bytes of the device that trains; ``None`` for a CPU.
        is_exclusive: Whether only one process at a time can use the device.
        available: Tells the free bytes of this machine.
    """

    device_memory: int | None = None
    is_exclusive: bool = False
    available: Callable[[], int] = available_memory

    def lacking(self, usage: Usage, factor: float) -> str:
        """Why the process of another configuration does not fit in the host's memory; empty if it does.

        Args:
            usage: The memory of the reference.
            factor: By how much larger the batches of the configuration are.
        """
        needed = MARGIN * (usage.resident + max(0.0, factor - 1) * usage.grown)
        free = float(self.available())
        if needed <= free:
            return ""
        return f"it takes about {numbers.size(needed)} of memory, and {numbers.size(max(0.0, free))} are free"

    def fits(self, running: int, usage: Usage, factor: float) -> bool:
        """Whether another configuration fits beside those that run.

        Args:
            running: Number of processes that run.
            usage: The memory of the reference.
            factor: By how much larger the batches of the configuration are.
        """
        if self.is_exclusive or running > MAX_CONCURRENT or self.lacking(usage, factor):
            return False
        device = usage.device
        if self.device_memory is None:
            return True
        if device is None:
            return False
        needed = running * (device + CONTEXT) + MARGIN * device * max(1.0, factor) + CONTEXT
        return needed <= DEVICE_SHARE * self.device_memory


def resident_bytes(pid: int) -> float:
    """The resident memory of a process and of those that it has started, without those that have exited."""
    resident = 0.0
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        for each in (process, *process.children(recursive=True)):
            with suppress(psutil.Error):  # it exits meanwhile
                resident += each.memory_info().rss
    return resident
