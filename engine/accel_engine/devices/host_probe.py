"""The host's CPU, memory, disks and networks, through psutil."""

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from accel_engine import clock
from accel_engine.devices.host_engine import EngineUse
from accel_engine.devices.host_traffic import Traffic
from accel_engine.devices.reading import Device, Inventory, Reading, Sample

_FIRST_LOOK = "known from the second reading on"
_NO_TIME_COUNTED = "the system has counted no time since the last reading"

_NAME_KEYS = ("model name", "Model", "Hardware")
"""Keys of ``/proc/cpuinfo`` that name the processor or, on ARM boards, at least the board; the best first."""


def processors() -> int:
    """Logical processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else psutil.cpu_count() or 1


class HostProbe:
    """Finds the CPU and reads how busy the host is.

    Use and rates are measured between a sample and the one before it. In a container the figures are
    those that the kernel shows there, which are most often the whole machine's.

    Args:
        cpuinfo: Where Linux describes the processor.
        engine: Process id of an engine, whose own use is read too.
    """

    kind = "cpu"

    def __init__(self, cpuinfo: Path = Path("/proc/cpuinfo"), engine: int | None = None) -> None:
        self._cpuinfo = cpuinfo
        self._engine = None if engine is None else EngineUse(engine)
        self._traffic = Traffic()
        self._before: list[_Times] = []

    def inventory(self) -> Inventory:
        """Describe the CPU; there always is one."""
        cores = psutil.cpu_count() or os.cpu_count() or 0
        memory = _memory().get("memory_total", Reading(None)).value
        name = processor_name(self._cpuinfo)
        return Inventory((Device("cpu:0", "cpu", name, None if memory is None else int(memory), cores),))

    def sample(self) -> tuple[Sample, ...]:
        """Read the host.

        ``utilization`` and ``core_0`` ... (%), ``memory_used``, ``memory_total``, ``swap_used`` and
        ``swap_total`` (B), ``load`` (of a minute), the readings of :class:`Traffic` and, where an engine
        is followed, of :class:`EngineUse`.
        """
        readings = {**self._utilization(), **_memory(), **_swap(), "load": _load(), **self._traffic.read()}
        if self._engine:
            readings |= self._engine.read()
        return (Sample(clock.now(), "cpu:0", readings),)

    def close(self) -> None:
        """Nothing is held open."""

    def _utilization(self) -> dict[str, Reading]:
        try:
            now = [_times(core) for core in psutil.cpu_times(percpu=True)]
        except (OSError, psutil.Error) as error:
            return {"utilization": Reading.missing(f"processor time cannot be read: {error}", "%")}
        before, self._before = self._before, now
        if len(before) != len(now):  # the first look, or cores were taken away or added
            spent = [_Times(0.0, 0.0)] * len(now)
            reason = _FIRST_LOOK
        else:
            spent = [_Times(b.busy - a.busy, b.total - a.total) for a, b in zip(before, now, strict=True)]
            reason = _NO_TIME_COUNTED
        together = _Times(sum(core.busy for core in spent), sum(core.total for core in spent))
        cores = {f"core_{index}": _share(core, reason) for index, core in enumerate(spent)}
        return {"utilization": _share(together, reason), **cores}


class _Times(NamedTuple):
    """Seconds that a core was busy, and seconds in all."""

    busy: float
    total: float


def _times(core: Any) -> _Times:
    # Linux counts a guest's time as user time too; waiting for a disk is not being busy.
    total = sum(core) - getattr(core, "guest", 0.0) - getattr(core, "guest_nice", 0.0)
    return _Times(total - core.idle - getattr(core, "iowait", 0.0), total)


def _share(spent: _Times, otherwise: str) -> Reading:
    """The share of time that was busy, or the reason that there is none."""
    if spent.total <= 0:
        return Reading.missing(otherwise, "%")
    return Reading(min(max(100 * spent.busy / spent.total, 0.0), 100.0), "%")


def _memory() -> dict[str, Reading]:
    """Memory that programs cannot have without another's loss, and all there is."""
    try:
        memory = psutil.virtual_memory()
    except (OSError, psutil.Error, ValueError) as error:
        missing = Reading.missing(f"memory cannot be read: {error}", "B")
        return {"memory_used": missing, "memory_total": missing}
    used, total = float(memory.total - memory.available), float(memory.total)
    return {"memory_used": Reading(used, "B"), "memory_total": Reading(total, "B")}


def _swap() -> dict[str, Reading]:
    try:
        swap = psutil.swap_memory()
    except (OSError, psutil.Error, ValueError, RuntimeError) as error:
        missing = Reading.missing(f"swap cannot be read: {error}", "B")
        return {"swap_used": missing, "swap_total": missing}
    return {"swap_used": Reading(float(swap.used), "B"), "swap_total": Reading(float(swap.total), "B")}


def _load() -> Reading:
    try:
        return Reading(os.getloadavg()[0])
    except OSError:
        return Reading.missing("the system does not give its load")


def processor_name(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Say what the processor's maker calls it, as well as the system knows."""
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
