"""Identifies a process by its pid and start time, so that a reused pid is not mistaken for it."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psutil

from accel_engine.json_values import Count, Number, Text

_START_TIME = 19
"""Index of a process's start time in /proc/PID/stat, counted from the field after its name; see proc_pid_stat(5)."""


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process, identified independently of the wall clock."""

    pid: Count
    """Its process id."""
    started: Number
    """On Linux, its start time in clock ticks since boot; elsewhere psutil's ``create_time()``, in seconds. 0 if there
    is no such process."""
    machine: Text
    """:func:`machine_id` of its machine."""
    namespace: Text
    """The pid namespace of the process id, which containers do not share."""

    @classmethod
    def of(cls, pid: int) -> Self:
        """Identify the process with a pid of this process's pid namespace."""
        return cls(pid, _start(pid)[0], machine_id(), _namespace())

    @property
    def visible(self) -> bool:
        """Whether it is on this machine and in the same pid namespace as this process."""
        return (self.machine, self.namespace) == (machine_id(), _namespace())

    @property
    def alive(self) -> bool:
        """Whether it is visible and still runs; false for a zombie."""
        started, running = _start(self.pid)
        return self.visible and running and started == self.started


def machine_id() -> str:
    """The id of this machine's boot: Linux' boot id, which containers share with their host; else its host name."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return os.uname().nodename


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _start(pid: int) -> tuple[float, bool]:
    """A process's start time, and whether it still runs; 0 if there is none."""
    try:
        if os.path.exists("/proc/self/stat"):
            # The name, in parentheses, may have spaces and parentheses.
            fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
            return float(fields[_START_TIME]), fields[0] not in "ZX"
        process = psutil.Process(pid)
        return process.create_time(), process.status() != psutil.STATUS_ZOMBIE
    except (OSError, psutil.Error):
        return 0.0, False
