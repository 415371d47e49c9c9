"""Writes a TensorBoard event file."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from accel_engine import clock
from accel_engine.run.media import MediaItem
from accel_engine.tensorboard import records
from accel_engine.tensorboard.media_records import media_record

PATTERN = "events.out.tfevents.*"
"""Glob pattern of event files."""


def remove(directory: Path) -> None:
    """Delete the event files in a directory."""
    for file in directory.glob(PATTERN):
        file.unlink()


class EventFile:
    """A new event file, which replaces what TensorBoard has read from its directory before.

    Args:
        directory: The directory, created if needed.

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
        """Make TensorBoard discard the steps from ``step`` on."""
        self._file.write(records.restart(clock.now(), step))

    def add(
        self, tag: str, times: npt.NDArray[np.float64], steps: npt.NDArray[np.int64], values: npt.NDArray[np.float32]
    ) -> None:
        """Write scalars of one tag; see :func:`accel_engine.tensorboard.records.scalars`."""
        if len(steps):
            self._file.write(records.scalars(tag, times, steps, values))

    def add_media(self, tag: str, time: float, step: int, item: MediaItem) -> None:
        """Write an image, a text or a histogram; see :func:`accel_engine.tensorboard.media_records.media_record`."""
        self._file.write(media_record(tag, time, step, item))

    def flush(self) -> None:
        """Flush the file, so that TensorBoard can read it."""
        self._file.flush()

    def close(self) -> None:
        """Flush and close the file."""
        self._file.close()
