"""Whether a lost run was lost because memory ran out, by what the system and its log say."""

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any

from accel_engine import clock
from accel_engine.run.directory.run_paths import LOG
from accel_engine.run.engine.out_of_memory_kills import KillCounts
from accel_engine.run.engine.process_identity import ProcessIdentity, machine_id

_TAIL = 1 << 16
"""Bytes at the end of a log that are searched."""

_MESSAGES = re.compile(
    rb"OOM when allocating|std::bad_alloc|ran out of memory(?!.*not a failure)|RESOURCE_EXHAUSTED: (?!.*No space left)"
    rb"|CUDA_ERROR_OUT_OF_MEMORY|MemoryError|what\(\):\s+could not (create|execute) a (primitive|memory)\b"
)
"""What TensorFlow, CUDA, C++, Python and oneDNN write when memory runs out; oneDNN in an exception that ends it.

TensorFlow's allocators write also that they ran out of memory where another try follows: "this is not a failure".
"""

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
    before, process = KillCounts.parse(meta.get("kills")), ProcessIdentity.parse(meta.get("process"))
    is_here = process is not None and process.machine == machine_id()
    is_recent = 0 <= clock.boot_seconds() - meta.get("heartbeat", -math.inf) <= SOON_SECONDS
    if before and process and is_here and is_recent and before.has_risen(same_groups=process.visible):
        return MemoryLoss.KILLED
    if (start := meta.get("log_start")) is not None and _MESSAGES.search(_log_after(directory, start)):
        return MemoryLoss.CRASHED
    return None


def _log_after(directory: Path, start: int) -> bytes:
    """The end of a run's log, after so many bytes."""
    with suppress(OSError), (directory / LOG).open("rb") as log:
        log.seek(max(start, log_size(directory) - _TAIL))
        return log.read(_TAIL)
    return b""
