"""Writes a run in the process of a script, which may do anything to its own descriptors.

When a script has closed all descriptors, the next file that it opens gets the number of one of the run's files. SQLite
must not write there. So each write checks the descriptors first, and the script's next ``open`` waits for the end of a
write, or of a reading of the devices: until then the closed numbers belong to nobody, and whatever uses them fails.
"""

import ctypes
import os
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from accel_engine.devices import Sampler
from accel_engine.errors import RunError
from accel_engine.events import Event, RunStarted, Warned
from accel_engine.run.directory.log_file import note_in_log
from accel_engine.run.directory.run_paths import LOCK
from accel_engine.run.store.database import DATABASE
from accel_engine.run.writing.writer import RunWriter

FILES = (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", LOCK)
"""The files that a writer has open."""

WAIT_SECONDS = 1.0
"""How long an ``open`` of the script waits at most, after it has closed the run's files."""

_OPENING = frozenset({"open", "sqlite3.connect", "socket.__new__"})
"""Audit events that precede the opening of a descriptor."""

_DESCRIPTORS = Path("/proc/self/fd") if Path("/proc/self/fd").is_dir() else Path("/dev/fd")

_File = tuple[int, int]  # device and inode


class _OpenFiles:
    """The descriptors by which this process has files open.

    Args:
        paths: The files; those that do not exist are ignored.
    """

    def __init__(self, paths: Collection[Path]) -> None:
        files = set[_File]()
        for path in paths:
            with suppress(OSError):
                status = path.stat()
                files.add((status.st_dev, status.st_ino))
        numbers = [int(name) for name in os.listdir(_DESCRIPTORS) if name.isdecimal()]
        self._files = {number: file for number in numbers if (file := _file_of(number)) in files}

    @property
    def are_open(self) -> bool:
        """Whether each file has one of its descriptors still: a script that reads its own run closes the others."""
        still_open = {file for number, file in self._files.items() if _file_of(number) == file}
        return still_open == set(self._files.values())


class OwnRunWriter(RunWriter):
    """Writes a run as long as the script has not closed its files, and writes warnings to its log, too.

    Args:
        directory: The run's directory.

    Raises:
        RunError: There is no run, or it cannot be written. All methods raise it, too.
    """

    def __init__(self, directory: Path) -> None:
        self._files: _OpenFiles | None = None
        super().__init__(directory)

    def begin(self, started: RunStarted | None = None) -> None:
        """Lock the run, and write its start."""
        super().begin(started)
        self._files = self._open_files()
        _writers.add(self)
        _observe_opening()

    def write_event(self, event: Event) -> None:
        """Add an event."""
        if isinstance(event, Warned):
            note_in_log(self.directory, event.message)
        super().write_event(event)

    @contextmanager
    def _changing_files(self) -> Iterator[None]:
        former, self._files = self._files, None  # they are closed, by this process itself
        yield
        self._files = former and self._open_files()

    def _open_files(self) -> _OpenFiles:
        return _OpenFiles([self.directory / name for name in FILES])

    def close(self) -> None:
        """Close the database and release the lock, unless the script has closed them."""
        with suppress(RunError):
            super().close()
        _writers.discard(self)

    def wait_if_closed(self) -> None:
        """Wait for the end of the present write and reading, if the script has closed the run's files."""
        if not self._files or self._files.are_open:
            return
        if self._lock.acquire(timeout=WAIT_SECONDS):
            self._lock.release()
        until = time.monotonic() + WAIT_SECONDS
        while any(sampler.is_reading for sampler in _samplers) and time.monotonic() < until:
            time.sleep(0.001)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            with super()._writing():
                self._check_files()
                yield
        except RunError:
            self._check_files()  # they may be the reason
            raise

    def _check_files(self) -> None:
        """Write nothing more if the script has closed the files.

        Raises:
            RunError: It has closed them.
        """
        if not self._files or self._files.are_open:
            return
        if self in _writers:
            _writers.discard(self)
            OwnSampler.closes = False
            # Never freed, as that would close the descriptors; not even at the end of the process.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._database))
            self._release()  # it closes the lock only if that is still its own
        raise RunError("the script has closed the files of the run: start it with accel-tui run, which keeps them open")

    def _close(self) -> None:
        super()._close()
        self._files = None


class OwnSampler(Sampler):
    """Samples the devices in the process of a script.

    Attributes:
        closes: Whether the descriptors of drivers are still their own, so that they can be closed.
    """

    closes = True

    def start(self) -> None:
        """Start sampling."""
        _samplers.add(self)
        super().start()

    def stop(self, *, close: bool = True) -> None:
        """Stop sampling."""
        super().stop(close=close and self.closes)
        _samplers.discard(self)


_writers: set[OwnRunWriter] = set()
"""The writers of this process that have their files open."""

_samplers: set[OwnSampler] = set()
"""The samplers of this process."""

os.register_at_fork(after_in_child=_writers.clear)


@cache
def _observe_opening() -> None:
    """Be called whenever this process opens something; Python cannot undo this."""
    sys.addaudithook(_before_opening)


def _before_opening(event: str, _: tuple[object, ...]) -> None:
    if event in _OPENING and _writers:
        with suppress(Exception):  # it would reach the script
            for writer in tuple(_writers):
                writer.wait_if_closed()


def _file_of(descriptor: int) -> _File | None:
    try:
        status = os.fstat(descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino
