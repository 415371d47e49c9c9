"""Why a run was lost, and how much of it is damaged, in words."""

from pathlib import Path

from accel_engine.run import RunInfo
from accel_engine.run.directory.run_paths import repair_command
from accel_engine.run.engine.memory_loss import MemoryLoss
from accel_engine.words import numbers

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


def left_out(damaged: int, run: Path) -> str:
    """How many damaged records of a run are left out, and what to do: a line; empty if there are none.

    Args:
        damaged: Their number.
        run: The run's directory.
    """
    if not damaged:
        return ""
    are = "is" if damaged == 1 else "are"
    return f"{numbers.counted(damaged, 'damaged record')} {are} left out: {repair_command(run)}"
