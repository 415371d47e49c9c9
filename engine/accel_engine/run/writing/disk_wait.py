"""Waits for the disk: a write that fails because the disk is full, or broken, is repeated until it succeeds."""

import os
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from accel_engine.run.directory.disk_problem import DiskProblem, disk_problem

RETRY_SECONDS = 1.0
"""How long to wait before the next try at least."""

RETRY_SHARE = 0.1
"""The share of the time that tries may take: half of a large checkpoint is not written every second."""

RESERVE_BYTES = 1 << 20
"""Space that a run sets aside while it trains, for its last steps and its end on a full disk."""

END_BYTES = 1 << 18
"""The part of it that is for the end of the run alone."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Reserve:
    """Space set aside on the disk, which the system frees at the latest when this process ends.

    Args:
        directory: A directory on the disk.
        size: Bytes; where there is less room, less is set aside.
    """

    def __init__(self, directory: Path, size: int) -> None:
        self._descriptor: int | None = None  # of a file without a name, so that nothing is left after a kill
        with suppress(OSError), tempfile.TemporaryFile(dir=directory, buffering=0) as file:
            self._descriptor = os.dup(file.fileno())
            file.write(os.urandom(size))  # a disk that compresses would save nothing of zeros

    def shrink(self, size: int) -> None:
        """Free all but ``size`` bytes."""
        with suppress(OSError):
            if self._descriptor is not None and os.fstat(self._descriptor).st_size > size:
                os.ftruncate(self._descriptor, size)  # not closed: a forked child may have the file open, too


class DiskWait:
    """Repeats writes to one run. Thread-safe.

    Args:
        directory: The run's directory.
        show: Called with the problem when a thread begins to wait for the disk, and with ``None`` when none waits.

    Attributes:
        directory: The run's directory.
        problem: What threads wait for; ``None`` if none waits.
    """

    def __init__(self, directory: Path, show: Callable[[DiskProblem | None], None]) -> None:
        self.directory = directory
        self._show = show
        self._lock = threading.Lock()
        self._threads = 0
        self._stop: Callable[[DiskProblem], Exception] | None = None
        self._stopping = threading.Event()
        self._reserve: Reserve | None = None
        self.problem: DiskProblem | None = None

    def set_aside(self) -> None:
        """Set space aside for the end of the run, if there is any."""
        self._reserve = Reserve(self.directory, RESERVE_BYTES)

    def move(self, directory: Path) -> None:
        """Write to another directory from now on; space is set aside on its disk, if it was before."""
        self.directory = directory
        if self._reserve and not self._stopping.is_set():
            self._free(0)
            self.set_aside()

    def give_up(self, stop: Callable[[DiskProblem], Exception]) -> None:
        """Try each write only once more from now on, with most of the space that was set aside.

        Args:
            stop: Makes the exception that writes raise which fail then, too.
        """
        self._stop = stop
        self._free(END_BYTES)
        self._stopping.set()

    def free_all(self) -> None:
        """Free the rest of the space that was set aside."""
        self._free(0)

    def _free(self, size: int) -> None:
        if self._reserve:
            self._reserve.shrink(size)

    def repeat(self, write: Callable[[], Result], on_success: Callable[[DiskProblem, float], object]) -> Result:
        """Call a function that writes, again and again while it fails because of the disk; returns its result.

        Args:
            write: Writes; a call after one that failed must do all of it.
            on_success: Called after a wait with the first problem and the seconds waited.

        Raises:
            Exception: What ``write`` raises for another reason, or the exception of :meth:`give_up`.
        """
        began = time.monotonic()
        try:
            return write()
        except Exception as error:
            first = disk_problem(error, self.directory)
            if first is None:
                raise
        result = self._wait(write, first, time.monotonic() - began)
        on_success(first, time.monotonic() - began)
        return result

    def _wait(self, write: Callable[[], Result], problem: DiskProblem, took: float) -> Result:
        self._count(1, problem)
        try:
            while True:
                is_last = self._stopping.wait(max(RETRY_SECONDS, took / RETRY_SHARE))
                began = time.monotonic()
                try:
                    return write()
                except Exception as error:
                    found = disk_problem(error, self.directory)
                    if found is None:
                        raise
                    if is_last and self._stop:
                        raise self._stop(found) from error
                    self._count(0, found)
                    took = time.monotonic() - began
        finally:
            self._count(-1, None)

    def _count(self, threads: int, problem: DiskProblem | None) -> None:
        """Count the threads that wait, and show what they wait for if that has changed."""
        with self._lock:
            self._threads += threads
            problem = (problem or self.problem) if self._threads else None
            if problem is not self.problem:
                self.problem = problem
                self._show(problem)


class WaitsForDisk(Protocol):
    """A class whose methods may wait for the disk."""

    def wait_for_disk(self, write: Callable[[], Result]) -> Result:
        """Call a function that writes, as :meth:`DiskWait.repeat` does."""


Writer = TypeVar("Writer", bound=WaitsForDisk)


def waits_for_disk(
    method: Callable[Concatenate[Writer, Arguments], Result],
) -> Callable[Concatenate[Writer, Arguments], Result]:
    """Decorate a method that writes, so that it waits for the disk."""

    @wraps(method)
    def call(self: Writer, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        return self.wait_for_disk(lambda: method(self, *args, **kwargs))

    return call
