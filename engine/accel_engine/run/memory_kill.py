"""Whether a run was lost because memory ran out."""

import signal
from contextlib import closing
from pathlib import Path

from accel_engine.run.reader import RunReader


def was_killed_for_memory(directory: Path, exit_status: int | None = None) -> bool:
    """Whether the kernel has probably killed the engine of a lost run, as memory ran out.

    Args:
        directory: The run's directory.
        exit_status: What its process returned, by ``Popen.returncode``, if this process has started it.

    Raises:
        RunError: The run cannot be read.
    """
    if exit_status is not None and exit_status != -signal.SIGKILL:
        return False
    with closing(RunReader(directory, steps=False, past_phases=False)) as reader:
        return reader.info().killed_for_memory
