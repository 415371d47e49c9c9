"""The parts of a run that workers other than its chief write, each a run of its own.

Workers on one machine write them within the run, in ``workers/1`` and so on. A worker on another machine
writes a run in that machine's home; where both see the same files, it is linked into the chief's.
"""

import json
import os
import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from accel_engine.cluster_spec import ClusterSpec
from accel_engine.errors import RunError
from accel_engine.run.paths import WORKERS, make_private, runs_directory
from accel_engine.run.schema import DATABASE, connect
from accel_engine.run.status import read_info

_ROLES = {"": "worker", "ps": "parameter server"}
"""What those are called whose places begin so; see :attr:`accel_engine.cluster_spec.ClusterSpec.run_name`."""

_PLACE = re.compile(r"(|ps)(\d+)")


@dataclass(frozen=True, slots=True)
class Membership:
    """Whose part a run is.

    Attributes:
        worker: The worker that writes it, as in ``worker 1``.
        run: The id of the run that the chief writes; empty where they never met.
    """

    worker: str
    run: str = ""

    def __str__(self) -> str:
        return f"{self.worker} of {self.run}" if self.run else self.worker


def path_of(directory: Path) -> str:
    """A run's path in the directory of runs: its id, or that of the run that it is within and its own place."""
    within = directory.parent.name == WORKERS
    return f"{directory.parent.parent.name}/{WORKERS}/{directory.name}" if within else directory.name


def worker_runs_of(directory: Path) -> dict[str, Path]:
    """The parts of a run that can be seen from here, by the names of their workers."""
    with suppress(OSError):
        places = [_PLACE.fullmatch(name) for name in os.listdir(directory / WORKERS)]
        ordered = sorted((place[1], int(place[2])) for place in places if place)
        return {f"{_ROLES[role]} {number}": directory / WORKERS / f"{role}{number}" for role, number in ordered}
    return {}


def link(part: Path, run: str, host: str, index: int) -> bool:
    """Let a worker's run be found in the chief's, if its files are to be seen here.

    Args:
        part: What the worker writes.
        run: The id of the chief's run.
        host: The machine that the chief is on, which tells its run from another of that id.
        index: The worker's number.
    """
    chief = runs_directory() / run
    place = chief / WORKERS / str(index)
    if part.parent.name == WORKERS:
        return True
    try:
        with closing(connect(chief, read_only=True)) as connection:
            if read_info(connection, chief).host != host:
                return False
        make_private(place.parent)
        if place.is_symlink():
            place.unlink()
        place.symlink_to(os.path.relpath(part.resolve(), place.parent.resolve()), target_is_directory=True)
    except (OSError, RunError, sqlite3.Error, KeyError, ValueError):
        return False  # the chief's screen then says on which machine the part is
    return True


def read_membership(connection: sqlite3.Connection) -> Membership | None:
    """Whose part a run is, by what its engine has said; ``None`` for a whole run."""
    rows = connection.execute(
        "SELECT kind, body FROM event WHERE id IN (SELECT max(id) FROM event "
        "WHERE kind IN ('run_started', 'workers_met') GROUP BY kind)"
    )
    said = {kind: json.loads(body) for kind, body in rows}
    worker = said.get("run_started", {}).get("worker", "")
    if not worker:
        return None
    met = said.get("workers_met", {}).get("workers")
    return Membership(worker, str(met[0]["run"]) if met else "")


def resumable(directory: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """The run to go on with where somebody names one: a worker's own part of it, if this is a worker.

    Raises:
        RunError: It is a part, which cannot go on without the others, or a script of the user's trained it.
        UsageError: What the environment says is no cluster.
    """
    cluster = ClusterSpec.find(environment)
    if cluster is not None and not cluster.chief:
        part = directory / WORKERS / cluster.run_name
        if (part / DATABASE).is_file():
            return part.resolve()
    try:
        with closing(connect(directory, read_only=True)) as connection:
            member = read_membership(connection)
            script = read_info(connection, directory).script
    except sqlite3.Error as error:
        raise RunError(f"run {directory.name} cannot be read: {error}") from error
    if script:
        raise RunError(
            f"run {directory.name} is a script's, which alone knows how to go on: start that again ({script})"
        )
    if member is None or (cluster is not None and cluster.name == member.worker):
        return directory
    if directory.parent.name == WORKERS:
        whole = directory.parent.parent.name
        raise RunError(f"this is {member.worker} of run {whole}: resume {whole}, which takes all its workers along")
    whole = member.run or "the chief's run"
    raise RunError(
        f"run {directory.name} is {member} and cannot go on alone: resume {whole} on the chief's machine "
        "and this one here, each with the same cluster as before (TF_CONFIG or Slurm)"
    )
