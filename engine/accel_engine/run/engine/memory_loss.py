"""Whether a lost run was lost because memory ran out, by what the system and its log say."""

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from accel_engine import clock
from accel_engine.control_groups import GROUPS, own_groups
from accel_engine.json_values import Count, Text, decode_or_none
from accel_engine.run.directory.log_file import OWN_PREFIX, fatal_message
from accel_engine.run.directory.run_paths import LOG
from accel_engine.run.engine.process_identity import ProcessIdentity, machine_id

_PROC = Path("/proc")
_GROUPS = GROUPS


@dataclass(frozen=True, slots=True)
class KillCounts:
    """How many processes the kernel has killed for lack of memory.

    The engine notes them at its start and with its heartbeats. Whoever finds it gone compares them with the present
    ones. The counter of the engine's control group counts its own processes only, the machine's counter all.
    """

    group: Text = ""
    """The file with the counter of a process's control group; empty if there is none."""
    in_group: Count | None = None
    """The value of this counter; ``None`` if it cannot be read."""
    on_machine: Count | None = None
    """The value of the machine's counter since its boot; ``None`` if it cannot be read."""

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
    for groups in own_groups("memory", _GROUPS, _PROC / "self/cgroup"):
        yield groups[0] / ("memory.events" if groups[-1] == _GROUPS else "memory.oom_control")


def _count(file: Path) -> int | None:
    """The value of ``oom_kill`` in a file of names and values; ``None`` if it has none or cannot be read."""
    with suppress(OSError, ValueError):
        for line in file.read_text().splitlines():
            name, _, value = line.partition(" ")
            if name == "oom_kill":
                return int(value)
    return None


_TAIL = 1 << 16
"""Bytes at the end of a log that are searched."""

_MESSAGES = re.compile(
    rb"OOM when allocating|std::bad_alloc|ran out of memory(?!.*not a failure)|RESOURCE_EXHAUSTED: (?!.*No space left)"
    rb"|CUDA_ERROR_OUT_OF_MEMORY|MemoryError|what\(\):\s+could not (create|execute) a (primitive|memory)\b"
)
"""What TensorFlow, CUDA, C++, Python and oneDNN write when memory runs out; oneDNN in an exception that ends it.

TensorFlow's allocators write also that they ran out of memory where another try follows: "this is not a failure".
"""

_ERROR_OF_GPU = re.compile(rf"^{OWN_PREFIX}(gpu:\d+ had error \d+ .*)$", re.MULTILINE)
"""What an engine writes when the driver reports an error."""

SOON_SECONDS = 120.0
"""How old the last heartbeat may be: the kernel's counters may rise later for other reasons. Swapping delays it."""


class MemoryLoss(StrEnum):
    """How the engine of a run was lost because memory ran out."""

    KILLED = "killed"
    """The kernel killed it, as far as its counters tell."""

    CRASHED = "crashed"
    """It crashed after its log said that memory ran out, as native code may do."""


def log_size(directory: Path) -> int:
    """Bytes of a run's log; 0 if there is none."""
    with suppress(OSError):
        return (directory / LOG).stat().st_size
    return 0


def memory_loss(directory: Path, meta: Mapping[str, Any]) -> MemoryLoss | None:
    """How the engine of a lost run was lost because memory ran out; ``None`` if nothing says so.

    Args:
        directory: The run's directory.
        meta: Its values.
    """
    with suppress(ValueError):
        return MemoryLoss(str(meta.get("memory_loss")))  # somebody has found it at once
    before, process = (
        decode_or_none(meta.get("kills"), KillCounts),
        decode_or_none(meta.get("process"), ProcessIdentity),
    )
    is_here = process is not None and process.machine == machine_id()
    is_recent = 0 <= clock.boot_seconds() - meta.get("heartbeat", -math.inf) <= SOON_SECONDS
    if before and process and is_here and is_recent and before.has_risen(same_groups=process.visible):
        return MemoryLoss.KILLED
    if (start := meta.get("log_start")) is not None and _MESSAGES.search(_log_after(directory, start)):
        return MemoryLoss.CRASHED
    return None


def last_words(directory: Path, meta: Mapping[str, Any]) -> str:
    """The last message of native code that ended the engine of a lost run, and the last error of a GPU; or empty.

    Args:
        directory: The run's directory.
        meta: Its values.
    """
    start = meta.get("log_start")
    if start is None:
        return ""
    log = _log_after(directory, start).decode(errors="replace")
    return "; ".join(filter(None, (fatal_message(log), *_ERROR_OF_GPU.findall(log)[-1:])))


def _log_after(directory: Path, start: int) -> bytes:
    """The end of a run's log, after a number of bytes."""
    with suppress(OSError), (directory / LOG).open("rb") as log:
        log.seek(max(start, log_size(directory) - _TAIL))
        return log.read(_TAIL)
    return b""
