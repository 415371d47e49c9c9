"""Why a run was lost."""

from accel_engine.run import RunInfo
from accel_engine.run.engine.memory_loss import MemoryLoss

DIRECTORY_LOST = "its directory was deleted, moved or replaced"
"""Why no command finds a run any more, as a clause."""


def how_lost(info: RunInfo | None) -> str:
    """Which process of a lost run is gone, or why nobody knows, as a clause."""
    if info and info.is_end_damaged:
        return "the record of its end is damaged"
    if info and info.launched:
        return "the script's supervisor was killed"
    process = "script" if info and info.script else "training process"
    if info and info.memory_loss is MemoryLoss.KILLED:
        return f"the system probably killed the {process}, as memory ran out"
    if info and info.memory_loss is MemoryLoss.CRASHED:
        return f"the {process} crashed, as memory ran out"
    return f"the {process} exited unexpectedly"
