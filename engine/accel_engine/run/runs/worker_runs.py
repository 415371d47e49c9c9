"""The runs that workers other than the chief write.

Workers on the chief's machine write them within the chief's run, in ``workers/1`` and so on. A worker on another
machine writes a run in that machine's home; on a shared file system, it is linked into the chief's run.
"""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from accel_engine.errors import RunError
from accel_engine.events import RunStarted, WorkersMet
from accel_engine.run.directory.run_paths import WORKERS, make_private, runs_directory
from accel_engine.run.engine.status import read_info
from accel_engine.run.history.history import History, stored_history
from accel_engine.run.store.database import DATABASE, reading
from accel_engine.strategies.cluster_spec import ClusterSpec

_ROLES = {"": "worker", "ps": "parameter server"}
"""Role by prefix of a worker's :attr:`accel_engine.strategies.cluster_spec.ClusterSpec.run_directory_name`."""

_PLACE = re.compile(r"(|ps)(\d+)")


@dataclass(frozen=True, slots=True)
class Membership:
    """The worker that writes a run, and its chief's run."""

    worker: str
    """The worker, e.g. ``worker 1``."""
    run: str = ""
    """Id of the chief's run; empty if the workers never connected."""

    def __str__(self) -> str:
        return f"{self.worker} of {self.run}" if self.run else self.worker


def path_of(directory: Path) -> str:
    """A run's path in the directory of runs: its id, or ``CHIEF'S ID/workers/PLACE``."""
    within = directory.parent.name == WORKERS
    return f"{directory.parent.parent.name}/{WORKERS}/{directory.name}" if within else directory.name


def worker_runs_of(directory: Path) -> dict[str, Path]:
    """The workers' runs that are in, or linked into, a run's directory, by worker name."""
    with suppress(OSError):
        places = [_PLACE.fullmatch(name) for name in os.listdir(directory / WORKERS)]
        ordered = sorted((place[1], int(place[2])) for place in places if place)
        return {f"{_ROLES[role]} {number}": directory / WORKERS / f"{role}{number}" for role, number in ordered}
    return {}


def link(part: Path, run: str, host: str, index: int) -> bool:
    """Link a worker's run into the chief's run, if that is on a file system visible here.

    Args:
        part: The worker's run directory.
        run: Id of the chief's run.
        host: Host name of the chief, to tell its run from another with that id.
        index: The worker's index.

    Returns:
        Whether the worker's run is in the chief's.
    """
    chief = runs_directory() / run
    place = chief / WORKERS / str(index)
    if part.parent.name == WORKERS:
        return True
    try:
        with reading(chief) as database:
            if read_info(database).host != host:
                return False
        make_private(place.parent)
        if place.is_symlink():
            place.unlink()
        place.symlink_to(os.path.relpath(part.resolve(), place.parent.resolve()), target_is_directory=True)
    except (OSError, RunError):
        return False  # the chief's screen then shows the worker's machine
    return True


def membership_of(history: History) -> Membership | None:
    """Which worker writes a run; ``None`` for a whole run."""
    started, met = history.started, history.workers_met
    if not started or not started.worker:
        return None
    return Membership(started.worker, met.workers[0].run if met and met.workers else "")


def run_to_continue(directory: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """The run directory to continue: in a worker process, the worker's own run within ``directory``.

    Raises:
        RunError: The run is a worker's, which cannot continue alone, or a user's script trained it.
        UsageError: The environment describes no valid cluster.
    """
    cluster = ClusterSpec.find(environment)
    if cluster is not None and not cluster.chief:
        part = directory / WORKERS / cluster.run_directory_name
        if (part / DATABASE).is_file():
            return part.resolve()
    with reading(directory) as database:
        member = membership_of(stored_history(database, RunStarted, WorkersMet))
        info = read_info(database)
    if info.script:
        raise RunError(
            f"run {directory.name} was recorded from a script and only the script can continue it: run {info.script}"
        )
    if info.source:
        raise RunError(f"run {directory.name} was imported from {info.source.path} and cannot be continued here")
    if info.bench:
        raise RunError(f"run {directory.name} was {info.made}: there is nothing to continue")
    if member is None or (cluster is not None and cluster.name == member.worker):
        return directory
    if directory.parent.name == WORKERS:
        chief_run = directory.parent.parent.name
        raise RunError(f"this is {member.worker} of run {chief_run}: continue {chief_run}, with all its workers")
    chief_run = member.run or "the chief's run"
    raise RunError(
        f"run {directory.name} is {member} and cannot continue alone: continue {chief_run} on the chief's machine "
        "and this run here, each with the same cluster as before (TF_CONFIG or Slurm)"
    )
