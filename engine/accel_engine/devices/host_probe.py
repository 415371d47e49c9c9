"""Reads the host's CPU, memory, disks and networks, and what an engine uses of them, through psutil."""

import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from accel_engine import clock
from accel_engine.devices.device_types import FIRST_READING, Device, Inventory, Reading, Sample

_NO_TIME_COUNTED = "the system has counted no CPU time since the last sample"

_NAME_KEYS = ("model name", "Model", "Hardware")
"""Keys of ``/proc/cpuinfo`` with the name of the processor or, on ARM boards, of the board; best first."""

_LOOPBACKS = ("lo", "lo0")


def processors() -> int:
    """Number of logical processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else psutil.cpu_count() or 1


class HostProbe:
    """Finds the CPU and reads the host's metrics.

    Utilization and rates are averages since the previous sample. In a container they are what the kernel reports
    there, usually of the whole machine.

    Args:
        engine: Process id of an engine, whose own usage is read, too.
    """

    kind = "cpu"

    def __init__(self, engine: int | None = None) -> None:
        self._engine = None if engine is None else EngineUsage(engine)
        self._traffic = HostTraffic()
        self._before: list[_Times] = []

    def inventory(self) -> Inventory:
        """Describe the CPU."""
        cores = psutil.cpu_count() or os.cpu_count() or 0
        memory = _used_and_total("memory", _memory)["memory_total"].value
        name = processor_name()
        return Inventory((Device("cpu:0", "cpu", name, None if memory is None else int(memory), cores),))

    def sample(self) -> tuple[Sample, ...]:
        """Read the host.

        ``utilization`` and ``core_0`` ... (%), ``memory_used``, ``memory_total``, ``swap_used`` and
        ``swap_total`` (B), ``load`` (1-minute average), the readings of :class:`HostTraffic` and, with an engine,
        of :class:`EngineUsage`.
        """
        memory, swap = _used_and_total("memory", _memory), _used_and_total("swap", _swap)
        readings = {**self._utilization(), **memory, **swap, "load": _load(), **self._traffic.read()}
        if self._engine:
            readings |= self._engine.read()
        return (Sample(clock.now(), "cpu:0", readings),)

    def close(self) -> None:
        """Do nothing: no resources are open."""

    def _utilization(self) -> dict[str, Reading]:
        try:
            now = [_times(core) for core in psutil.cpu_times(percpu=True)]
        except (OSError, psutil.Error) as error:
            return {"utilization": Reading.missing(f"cannot read CPU times: {error}", "%")}
        before, self._before = self._before, now
        if len(before) != len(now):  # the first sample, or the number of cores has changed
            elapsed = [_Times(0.0, 0.0)] * len(now)
            reason = FIRST_READING
        else:
            elapsed = [_Times(b.busy - a.busy, b.total - a.total) for a, b in zip(before, now, strict=True)]
            reason = _NO_TIME_COUNTED
        total = _Times(sum(core.busy for core in elapsed), sum(core.total for core in elapsed))
        cores = {f"core_{index}": _utilization_of(core, reason) for index, core in enumerate(elapsed)}
        return {"utilization": _utilization_of(total, reason), **cores}


class _Times(NamedTuple):
    """Busy and total seconds of a core."""

    busy: float
    total: float


def _times(core: Any) -> _Times:
    # Linux includes guest time in user time; iowait does not count as busy.
    total = sum(core) - getattr(core, "guest", 0.0) - getattr(core, "guest_nice", 0.0)
    return _Times(total - core.idle - getattr(core, "iowait", 0.0), total)


def _utilization_of(elapsed: _Times, reason: str) -> Reading:
    """The busy share of time; missing, with ``reason``, if no time has elapsed."""
    if elapsed.total <= 0:
        return Reading.missing(reason, "%")
    return Reading(min(max(100 * elapsed.busy / elapsed.total, 0.0), 100.0), "%")


def _memory() -> tuple[float, float]:
    """Memory that is not available to new programs, and total memory."""
    memory = psutil.virtual_memory()
    return memory.total - memory.available, memory.total


def _swap() -> tuple[float, float]:
    swap = psutil.swap_memory()
    return swap.used, swap.total


def _used_and_total(source: str, read: Callable[[], tuple[float, float]]) -> dict[str, Reading]:
    names = (f"{source}_used", f"{source}_total")
    try:
        return {name: Reading(float(size), "B") for name, size in zip(names, read(), strict=True)}
    except (OSError, psutil.Error, ValueError, RuntimeError) as error:
        return Reading.all_missing(names, f"cannot read {source}: {error}", "B")


def _load() -> Reading:
    try:
        return Reading(os.getloadavg()[0])
    except OSError:
        return Reading.missing("the system does not report its load")


def processor_name(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Find the processor's model name."""
    name = _from_sysctl() if sys.platform == "darwin" else _from_cpuinfo(cpuinfo)
    return " ".join((name or platform.processor() or platform.machine() or "CPU").split())


def _from_cpuinfo(path: Path) -> str:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    known = {key.strip(): value for key, _, value in (line.partition(":") for line in reversed(lines))}
    return next((known[key] for key in _NAME_KEYS if known.get(key, "").strip()), "")


def _from_sysctl() -> str:
    command = ("/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string")
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=2, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


class HostTraffic:
    """Average rates of disks and networks since the previous read.

    Args:
        sysfs: Path of ``/sys``.
        clock: Returns the time in seconds.
    """

    def __init__(self, sysfs: Path = Path("/sys"), clock: Callable[[], float] = time.monotonic) -> None:
        self._sysfs = sysfs
        self._clock = clock
        self._before: dict[str, tuple[float, float]] = {}

    def read(self) -> dict[str, Reading]:
        """Read ``disk_read``, ``disk_written``, ``network_received`` and ``network_sent`` (B/s)."""
        return {
            **self._rates("disk", self._disks, ("disk_read", "disk_written")),
            **self._rates("network", self._networks, ("network_received", "network_sent")),
        }

    def _rates(
        self, source: str, count: Callable[[], tuple[int, int] | None], names: tuple[str, str]
    ) -> Mapping[str, Reading]:
        try:
            totals = count()
        except (OSError, psutil.Error, ValueError) as error:
            return Reading.all_missing(names, f"cannot read {source} traffic: {error}", "B/s")
        if totals is None:
            return Reading.all_missing(names, f"the system reports no {source}", "B/s")
        now = self._clock()
        return {name: self._rate(name, now, total) for name, total in zip(names, totals, strict=True)}

    def _rate(self, name: str, now: float, total: int) -> Reading:
        then, before = self._before.get(name, (now, total))
        self._before[name] = now, total
        if now <= then:
            return Reading.missing(FIRST_READING, "B/s")
        return Reading(max(total - before, 0) / (now - then), "B/s")  # the total shrinks when a disk is removed

    def _disks(self) -> tuple[int, int] | None:
        counted = psutil.disk_io_counters(nowrap=False)
        return None if counted is None else (counted.read_bytes, counted.write_bytes)

    def _networks(self) -> tuple[int, int] | None:
        """Bytes of the physical network cards; if there are none, as in a container, of all but the loopback."""
        cards = psutil.net_io_counters(pernic=True, nowrap=False)
        # Cards count the traffic of bridges and tunnels, too.
        physical = [
            counted for name, counted in cards.items() if (self._sysfs / "class/net" / name / "device").exists()
        ]
        chosen = physical or [counted for name, counted in cards.items() if name not in _LOOPBACKS]
        if not chosen:
            return None
        return sum(card.bytes_recv for card in chosen), sum(card.bytes_sent for card in chosen)


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
