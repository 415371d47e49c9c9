"""One event file of TensorBoard's, as it is written."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from accel_engine import clock
from accel_engine.tensorboard import records

PATTERN = "events.out.tfevents.*"
"""The files in a directory that TensorBoard reads."""


def remove(directory: Path) -> None:
    """Remove the event files of a directory, if there are any."""
    for file in directory.glob(PATTERN):
        file.unlink()


class EventFile:
    """A new event file, in place of whatever TensorBoard has read in this directory before.

    Args:
        directory: Where to; it is made if need be.

    Raises:
        OSError: It cannot be written.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        now = clock.now()
        self._file = (directory / PATTERN.replace("*", f"{int(now):010d}.accel-tui")).open("wb")
        self._file.write(records.version(now))
        self.restart(0)

    def restart(self, step: int) -> None:
        """Let a step and those after it count as not written."""
        self._file.write(records.restart(clock.now(), step))

    def add(
        self, tag: str, times: npt.NDArray[np.float64], steps: npt.NDArray[np.int64], values: npt.NDArray[np.float32]
    ) -> None:
        """Write scalars of one tag; see :func:`accel_engine.tensorboard.records.scalars`."""
        if len(steps):
            self._file.write(records.scalars(tag, times, steps, values))

    def flush(self) -> None:
        """Let everybody see what was written."""
        self._file.flush()

    def close(self) -> None:
        """Write the rest and let go of the file."""
        self._file.close()
