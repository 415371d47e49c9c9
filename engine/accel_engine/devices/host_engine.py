"""What an engine process, and those that it started, take of the host."""

import math
import time
from collections.abc import Callable

import psutil

from accel_engine.devices.reading import Reading

CHILDREN_EVERY = 10.0
"""Seconds between two looks for child processes: that look goes through all processes of the machine."""


class EngineUse:
    """CPU and memory of a process and its children.

    Args:
        pid: The engine's.
        clock: Tells the time in seconds.
    """

    def __init__(self, pid: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._pid = pid
        self._clock = clock
        self._engine: psutil.Process | None = None
        self._children: list[psutil.Process] = []
        self._children_due = -math.inf
        self._spent: dict[int, float] = {}
        self._then = 0.0

    def read(self) -> dict[str, Reading]:
        """Give ``engine_cpu`` (%, of which a core has 100) and ``engine_memory`` (B, resident)."""
        try:
            self._engine = self._engine or psutil.Process(self._pid)
            now = self._clock()
            if now >= self._children_due:
                self._children = self._engine.children(recursive=True)
                self._children_due = now + CHILDREN_EVERY
            seconds, memory = _use(self._engine)
        except (psutil.Error, OSError) as error:
            reason = "the engine has ended" if isinstance(error, psutil.NoSuchProcess) else str(error)
            return {"engine_cpu": Reading.missing(reason, "%"), "engine_memory": Reading.missing(reason, "B")}
        spent = {self._pid: seconds}
        for child in self._children:
            try:
                spent[child.pid], resident = _use(child)
            except (psutil.Error, OSError):
                continue  # it has ended
            memory += resident
        # A process that was not there before has all that it ever used, of which most is not of this second.
        used = sum(seconds - self._spent[pid] for pid, seconds in spent.items() if pid in self._spent)
        passed, first = now - self._then, not self._spent
        self._spent, self._then = spent, now
        return {
            "engine_cpu": (
                Reading.missing("known from the second reading on", "%")
                if first or passed <= 0
                else Reading(100 * max(used, 0.0) / passed, "%")
            ),
            "engine_memory": Reading(float(memory), "B"),
        }


def _use(process: psutil.Process) -> tuple[float, int]:
    """Seconds of CPU time, and bytes of memory, of one process."""
    with process.oneshot():
        times = process.cpu_times()
        return times.user + times.system, process.memory_info().rss
