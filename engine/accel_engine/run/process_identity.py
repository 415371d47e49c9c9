"""Which process is meant by a number, also after that process has ended and its number was given to another."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import psutil

_START_TIME = 19
"""Where /proc/PID/stat has a process's start, counted from the field after its name; see proc_pid_stat(5)."""


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process, told apart from all others by what no step of the wall clock moves.

    Attributes:
        pid: Its number.
        started: On Linux, when it started, in clock ticks since the machine was booted; elsewhere psutil's
            ``create_time()``, in seconds. 0 where there is no such process.
        machine: :func:`machine_id` of where it runs.
        namespace: The pid namespace that the number belongs to; a container has one of its own.
    """

    pid: int
    started: float
    machine: str
    namespace: str

    @classmethod
    def of(cls, pid: int) -> Self:
        """The process with a number, by the numbers that this process sees."""
        return cls(pid, _start(pid)[0], machine_id(), _namespace())

    @classmethod
    def parse(cls, text: object) -> Self | None:
        """Read one as :meth:`to_json` wrote it; ``None`` where there is none."""
        try:
            return cls(**json.loads(str(text)))
        except (ValueError, TypeError):
            return None

    def to_json(self) -> str:
        """As JSON, in one line."""
        return json.dumps(asdict(self))

    @property
    def visible(self) -> bool:
        """Whether it can be seen from here: on this machine, and in the same pid namespace."""
        return (self.machine, self.namespace) == (machine_id(), _namespace())

    @property
    def alive(self) -> bool:
        """Whether it still runs; not where it is not visible, and not once it has ended but was not waited for."""
        started, running = _start(self.pid)
        return self.visible and running and started == self.started


def machine_id() -> str:
    """The boot of this machine: Linux' boot id, which containers share with their host; elsewhere its name."""
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
    """When a process started, and whether it still runs; 0 where there is none."""
    try:
        if os.path.exists("/proc/self/stat"):
            # The name, in parentheses, may have spaces and parentheses.
            fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
            return float(fields[_START_TIME]), fields[0] not in "ZX"
        process = psutil.Process(pid)
        return process.create_time(), process.status() != psutil.STATUS_ZOMBIE
    except (OSError, psutil.Error):
        return 0.0, False
