"""What is said of damaged records."""

from pathlib import Path

from accel_engine.run.directory.run_paths import repair_command
from accel_tui.formatting import numbers


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
