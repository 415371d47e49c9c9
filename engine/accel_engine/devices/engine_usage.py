"""Reads the CPU and memory usage of an engine and its child processes."""

import math
import time
from collections.abc import Callable

import psutil

from accel_engine.devices.device_types import FIRST_READING, Reading

CHILDREN_INTERVAL = 10.0
"""Seconds between searches for child processes, which scan all processes of the machine."""


class EngineUsage:
    """CPU and memory of a process and its children.

    Args:
        pid: Process id of the engine.
        clock: Returns the time in seconds.
    """

    def __init__(self, pid: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._pid = pid
        self._clock = clock
        self._engine: psutil.Process | None = None
        self._children: list[psutil.Process] = []
        self._children_due = -math.inf
        self._cpu_seconds: dict[int, float] = {}
        self._last_read = 0.0

    def read(self) -> dict[str, Reading]:
        """Read ``engine_cpu`` (%, 100 per core) and ``engine_memory`` (B, resident)."""
        try:
            self._engine = self._engine or psutil.Process(self._pid)
            now = self._clock()
            if now >= self._children_due:
                self._children = self._engine.children(recursive=True)
                self._children_due = now + CHILDREN_INTERVAL
            seconds, memory = _cpu_and_memory(self._engine)
        except (psutil.Error, OSError) as error:
            reason = "the engine has exited" if isinstance(error, psutil.NoSuchProcess) else str(error)
            return {"engine_cpu": Reading.missing(reason, "%"), "engine_memory": Reading.missing(reason, "B")}
        cpu_seconds = {self._pid: seconds}
        for child in self._children:
            try:
                cpu_seconds[child.pid], resident = _cpu_and_memory(child)
            except (psutil.Error, OSError):
                continue  # it has exited
            memory += resident
        # A new process is counted from the next reading on: its total is not of this interval.
        before = self._cpu_seconds
        used = sum(seconds - before[pid] for pid, seconds in cpu_seconds.items() if pid in before)
        elapsed, first = now - self._last_read, not before
        self._cpu_seconds, self._last_read = cpu_seconds, now
        return {
            "engine_cpu": (
                Reading.missing(FIRST_READING, "%")
                if first or elapsed <= 0
                else Reading(100 * max(used, 0.0) / elapsed, "%")
            ),
            "engine_memory": Reading(float(memory), "B"),
        }


def _cpu_and_memory(process: psutil.Process) -> tuple[float, int]:
    """CPU seconds and resident bytes of a process."""
    with process.oneshot():
        times = process.cpu_times()
        return times.user + times.system, process.memory_info().rss
