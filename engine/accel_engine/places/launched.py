"""Places without a queue of jobs: a process of this program starts the run's processes there and waits for them."""

import json
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Protocol

from accel_engine.errors import RunError
from accel_engine.places.own_process import set_place
from accel_engine.places.place import JobState, Place, PlacedJob
from accel_engine.process.detached import leave, start_detached
from accel_engine.run import read_run
from accel_engine.run.directory.lock import is_locked
from accel_engine.run.store.meta import PlacedRun

REQUEST = "place.json"
"""What the run asked of its place, in the run's directory."""

LOG = "job.log"
"""What the processes print before they are engines."""

LAUNCHER_LOCK = "launcher.lock"
"""The file that the process holds locked which starts the run's processes."""

STARTING = "processes are started"
"""The state before the first process is started."""

_POLL_SECONDS = 0.05


class Member(Protocol):
    """A process that a place has started."""

    name: str
    """Its machine."""

    def poll(self) -> int | None:
        """Its exit status, or -1 if nobody knows it; ``None`` while it runs as far as is known."""

    def end(self) -> None:
        """End its engine: with a checkpoint, or without if it does not stop."""


class LaunchedPlace(Place):
    """A place whose processes are started by :mod:`accel_engine.places.launcher`."""

    @abstractmethod
    def start(self, job: PlacedJob, tell: Callable[[str], bool]) -> list[Member]:
        """Start the processes of a run, one on each machine, and return them, the chief first.

        Args:
            job: The run; its plan is not placed.
            tell: Called with what is waited for; returns whether to continue.

        Raises:
            RunError: The processes cannot be started now.
            UsageError: The processes cannot be started until a user changes something.
        """

    def close(self) -> None:
        """Give back what the processes had."""

    def files(self, job: PlacedJob) -> Mapping[str, str]:
        """See :meth:`Place.files`."""
        return {REQUEST: json.dumps(asdict(job.request) | {"gpus": job.gpus}, indent=2) + "\n"}

    def submit(self, job: PlacedJob) -> str:
        """See :meth:`Place.submit`; the job's name is the run's directory."""
        what = f"the process that starts run {job.directory.name}"
        options = self.options(job.request)
        set_place(job.directory, PlacedRun(str(self.name), str(job.directory), waits=STARTING, options=options))
        command = ("-m", "accel_engine.places.launcher", str(job.directory))
        process = start_detached(what, *command, log=job.directory / LOG)
        while not is_locked(job.directory, LAUNCHER_LOCK):
            if process.poll() is not None:
                raise RunError(f"{what} has ended{last_line(job.directory)}")
            time.sleep(_POLL_SECONDS)
        leave(process)
        return str(job.directory)

    def state(self, job: str) -> JobState:
        """See :meth:`Place.state`."""
        directory = Path(job)
        info = read_run(directory, watched=False)
        if is_locked(directory, LAUNCHER_LOCK):
            return JobState(runs=True, reason=f"{self.name}: {info.place.waits if info.place else STARTING}")
        return JobState(reason=f"the process that starts it has ended{last_line(directory)}")

    def cancel(self, job: str) -> None:
        """See :meth:`Place.cancel`; the process that has started it ends the others."""
        directory = Path(job)
        placed = read_run(directory, watched=False).place
        if placed is None or not is_locked(directory, LAUNCHER_LOCK):
            raise RunError(f"the process that starts run {directory.name} has ended")
        set_place(directory, replace(placed, is_cancelled=True))


def last_line(directory: Path) -> str:
    """The last line that was printed before the engines began, after a colon; empty for none."""
    try:
        lines = (directory / LOG).read_text("utf-8", "replace").split("\n")
    except OSError:
        return ""
    found = [line.strip() for line in lines if line.strip()]
    return f": {found[-1]}" if found else ""
