"""Writes a run in the process of a script, which may do anything to its own descriptors."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from accel_engine.errors import RunError
from accel_engine.events import Event, RunStarted, Warned
from accel_engine.recording.open_files import OpenFiles
from accel_engine.run.connection import DATABASE
from accel_engine.run.run_paths import LOCK, LOG
from accel_engine.run.writer import RunWriter

FILES = (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", LOCK)
"""The files that a writer has open."""


class OwnRunWriter(RunWriter):
    """Writes a run as long as the script has not closed its files, and writes warnings to its log, too.

    Args:
        directory: The run's directory.

    Raises:
        RunError: There is no run, or it cannot be written. All methods raise it, too.
    """

    def __init__(self, directory: Path) -> None:
        self._files: OpenFiles | None = None
        self._is_abandoned = False
        super().__init__(directory)

    def begin(self, started: RunStarted | None = None) -> None:
        """Lock the run, and write its start."""
        super().begin(started)
        self._files = OpenFiles([self.directory / name for name in FILES])

    def write_event(self, event: Event) -> None:
        """Add an event."""
        if isinstance(event, Warned):
            write_log(self.directory, event.message)
        super().write_event(event)

    def close(self) -> None:
        """Close the database and release the lock, unless the script has closed them."""
        with suppress(RunError):
            super().close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        if self._files and not self._files.are_open:
            self._abandon()
        with super()._writing():
            yield

    def _abandon(self) -> None:
        """Write nothing more: SQLite would write into, and then close, what is now the script's own file.

        Raises:
            RunError: Always.
        """
        message = "the script has closed the files of the run: start it with accel-tui run, which keeps them open"
        if not self._is_abandoned:
            self._is_abandoned = True
            # Never freed, as that would close the descriptors; not even at the end of the process.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._database))
            self._release()  # it closes the lock only if that is still its own
        raise RunError(message)


def write_log(directory: Path, message: str) -> None:
    """Add a message to the log of a run; a full disk does not take it."""
    with suppress(OSError), (directory / LOG).open("a") as log:
        log.write(f"accel-tui: {message}\n")
