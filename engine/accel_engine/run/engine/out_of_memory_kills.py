"""Tells whether the kernel has killed a process because memory ran out, by its counters of such kills.

The engine notes them at its start and with its heartbeats. Whoever finds it gone compares them with the present ones.
The counter of the engine's control group counts its own processes only; that of the machine counts those of all.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from accel_engine.stored_values import StoredObject

_PROC = Path("/proc")
_GROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class KillCounts(StoredObject):
    """How many processes the kernel has killed for lack of memory.

    Attributes:
        group: The file with the counter of a process's control group; empty if there is none.
        in_group: That counter; ``None`` if it cannot be read.
        on_machine: The counter of the whole machine since its boot; ``None`` if it cannot be read.
    """

    group: str = ""
    in_group: int | None = None
    on_machine: int | None = None

    def has_risen(self, *, same_groups: bool = True) -> bool:
        """Whether the kernel has killed a process since these were counted, which may have been the one meant.

        Args:
            same_groups: Whether this process sees the control groups of the one that counted: both run in the same
                container.
        """
        group = _count(Path(self.group)) if self.group and same_groups else None
        if group is not None and self.in_group is not None:
            return group > self.in_group
        machine = _count(_PROC / "vmstat")
        return machine is not None and self.on_machine is not None and machine > self.on_machine


def count_kills() -> KillCounts:
    """The present counters of this process's control group and of the machine."""
    machine = _count(_PROC / "vmstat")
    for file in _counters_of_groups():
        if (count := _count(file)) is not None:
            return KillCounts(str(file), count, machine)
    return KillCounts(on_machine=machine)


def _counters_of_groups() -> Iterator[Path]:
    """The files that may have the counter of this process's control group, of version 1 or 2."""
    with suppress(OSError, ValueError):
        for line in (_PROC / "self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                yield _GROUPS / path.lstrip("/") / "memory.events"
            elif "memory" in controllers.split(","):
                yield _GROUPS / "memory" / path.lstrip("/") / "memory.oom_control"


def _count(file: Path) -> int | None:
    """The value of ``oom_kill`` in a file of names and values; ``None`` if it has none or cannot be read."""
    with suppress(OSError, ValueError):
        for line in file.read_text().splitlines():
            name, _, value = line.partition(" ")
            if name == "oom_kill":
                return int(value)
    return None
