"""The processes that a place's engine starts on its machines: which run each trains, and whether it starts again."""

import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil

from accel_engine.errors import RunError, UsageError, file_errors
from accel_engine.events import ENGINE_LOST, Outcome, RunEnded
from accel_engine.json_values import decode_or_none, encode
from accel_engine.keep_alive.restart import STARTED_BY_PLACE, Restart
from accel_engine.keep_alive.watcher import MAX_RESTARTS
from accel_engine.plan import Plan
from accel_engine.plan.plan_file import read_plan_file
from accel_engine.run import RunInfo, Status, create, read_run, reopen
from accel_engine.run.directory.lock import is_locked
from accel_engine.run.directory.run_paths import latest_checkpoint
from accel_engine.run.engine.process_identity import ProcessIdentity
from accel_engine.run.runs.creation import create_worker
from accel_engine.run.runs.worker_runs import worker_runs_of
from accel_engine.run.store.database import DATABASE, reading, writing
from accel_engine.run.store.meta import PlacedRun, read_meta
from accel_engine.run.store.stored_events import last_event
from accel_engine.strategies.cluster_spec import ClusterSpec

AGAIN = 75
"""Exit status for a run that is to be started again."""

FIRST_SECONDS = 120.0
"""After this time without the run that the first process creates for all, the log tells what may be wrong."""

END_SECONDS = 30.0
"""How long an engine may take to write a checkpoint and stop."""

NAMES_SECONDS = 3600.0
"""How long the other machines of a run may take to be there, as where they wait for nodes or pull an image."""

_POLL_SECONDS = 0.2


def own_directory(
    directory: Path, plan_file: Path | None = None, environment: Mapping[str, str] = os.environ
) -> Path | None:
    """The run directory of this process, ready for an engine.

    Args:
        directory: The run; if there is a plan file, the link to it, which the first process makes.
        plan_file: The plan of a new run.
        environment: Describes the cluster that this process belongs to.

    Returns:
        ``None`` if the run has ended for good, so that there is nothing to start.

    Raises:
        RunError: The run cannot be read or written, or another process trains it.
        UsageError: The environment describes no valid cluster, or there is no run in the directory.
    """
    cluster = ClusterSpec.find(environment)
    if cluster is not None:
        _wait_for_names(cluster)
    is_first = cluster is None or cluster.chief
    if plan_file is not None and not (directory / DATABASE).is_file():
        if is_first:
            _create(directory, plan_file)
        else:
            _wait_for(directory)
    directory = directory.resolve()
    info = _info(directory)
    if info.plan is None:
        raise RunError(f"run {info.id} has no plan that can be trained here")
    if not info.status.live and not _ended_before_its_time(directory, info):
        return None
    if cluster is not None and not cluster.chief:
        return create_worker(directory, cluster.run_directory_name, info.plan)
    if info.status not in (Status.QUEUED, Status.STARTING) and info.status.live:
        raise RunError(f"run {info.id} is {info.status}: another process trains it")
    if not info.status.live:
        reopen(directory, info.plan)
        if info.place:
            set_place(directory, info.place)
    return directory


def judged(directory: Path) -> int:
    """The exit status for a run that is not started again: 1 if it has failed or was lost."""
    return int(_info(directory).status in (Status.FAILED, Status.LOST))


def restart_of(directory: Path) -> Restart | None:
    """Why the engine of a run is started again; ``None`` for a first start."""
    info = _info(directory)
    if info.place is None or not info.place.reason:
        return None
    with reading(directory) as database:
        steps = database.chunk_from_end()[1]
    return Restart(ENGINE_LOST, steps, info.place.reason, f"{info.place.place} has started it again")


def is_to_start_again(directory: Path) -> bool:
    """Whether a run that has ended is to be started again by its place; if so, it waits for that from now on.

    A run that the system has stopped, as before its job's time is over, always is; one that was lost or has failed
    for a reason that may be temporary, if its plan says ``--keep-alive on``. After :data:`MAX_RESTARTS` starts without
    a newer checkpoint it is not.

    Raises:
        RunError: The run cannot be read or written.
    """
    directory = directory.resolve()
    info = _info(directory)
    if info.plan is None or info.status.live or info.place is None:
        return info.status is Status.QUEUED and info.place is not None and bool(info.place.reason)
    reason = _why_again(directory, info)
    if not reason:
        return False
    checkpoint = latest_checkpoint(directory)
    restarts = 1 if checkpoint > info.place.checkpoint else info.place.restarts + 1
    if restarts > MAX_RESTARTS:
        return False
    reopen(directory, info.plan, queued=True)
    placed = replace(info.place, restarts=restarts, checkpoint=checkpoint, reason=reason)
    set_place(directory, placed)
    return True


def may_start_again(directory: Path) -> bool:
    """Whether a run has ended in a way after which its place may start it again."""
    return bool(_why_again(directory, _info(directory)))


def end_processes(directory: Path) -> None:
    """End the engines of a run on this machine: with a checkpoint, or without if they have not stopped in time.

    Raises:
        RunError: The run cannot be read.
    """
    processes = []
    for each in (directory, *worker_runs_of(directory).values()):
        with suppress(RunError), reading(each) as database:
            identity = decode_or_none(read_meta(database).get("process"), ProcessIdentity)
            if identity and identity.alive and is_locked(each):
                processes.append(psutil.Process(identity.pid))
    for process in processes:
        with suppress(psutil.Error):
            process.terminate()
    for process in psutil.wait_procs(processes, END_SECONDS)[1]:
        with suppress(psutil.Error):
            process.kill()


def set_place(directory: Path, placed: PlacedRun) -> None:
    """Record where a run was started.

    Raises:
        RunError: The run cannot be written.
    """
    with writing(directory) as database:
        database.set_meta(place=encode(placed))


def _create(link: Path, plan_file: Path) -> None:
    """Create a run from a plan file, and a link to it."""
    found = read_plan_file(plan_file)
    made = create(Plan.from_mapping(found.values), queued=True)
    set_place(made, PlacedRun(os.environ.get(STARTED_BY_PLACE, "job"), os.environ.get("SLURM_JOB_ID", link.name)))
    with file_errors(f"cannot write the link {link} to run {made.name}"):
        link.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            link.unlink()  # of a run that was deleted
        link.symlink_to(made, target_is_directory=True)


def _wait_for_names(cluster: ClusterSpec) -> None:
    """Wait until the names of all machines resolve; the names of pods do once the pods exist."""
    until, missing = time.monotonic() + NAMES_SECONDS, ""
    for address in cluster.peers.values():
        host = address.rpartition(":")[0].strip("[]")
        while True:
            try:
                socket.getaddrinfo(host, None)
                break
            except socket.gaierror as error:
                if time.monotonic() > until:
                    raise RunError(f"the name {host} of another process does not resolve: {error.strerror}") from error
            if host != missing:
                missing = host
                print(f"accel-tui: waits until the name {host} resolves", flush=True)  # noqa: T201 (the job's log)
            time.sleep(1.0)


def _wait_for(link: Path) -> None:
    began, is_told = time.monotonic(), False
    while not (link / DATABASE).is_file():
        waited = time.monotonic() - began
        problem = f"the first process has made no run at {link} for {waited:.0f} s: is it on a shared disk?"
        if waited > NAMES_SECONDS:
            raise RunError(problem)
        if waited > FIRST_SECONDS and not is_told:
            is_told = True
            print(f"accel-tui: {problem}", flush=True)  # noqa: T201 (the job's log)
        time.sleep(_POLL_SECONDS)


def _info(directory: Path) -> RunInfo:
    if not (directory / DATABASE).is_file():
        raise UsageError(f"there is no run in {directory}: its directory must be the same on all machines of the place")
    return read_run(directory, watched=False)


def _ended_before_its_time(directory: Path, info: RunInfo) -> bool:
    if info.status is Status.LOST:
        return True
    with reading(directory) as database:
        ended = last_event(database, RunEnded)
    return ended is not None and ended.temporary


def _why_again(directory: Path, info: RunInfo) -> str:
    """Why a run that has ended is to be started again; empty if it is not."""
    keeps_alive = info.plan is not None and info.plan.keep_alive == "on"
    if info.status is Status.LOST:
        return "the engine exited unexpectedly" if keeps_alive else ""
    with reading(directory) as database:
        ended = last_event(database, RunEnded)
    if ended is None or not ended.temporary:
        return ""
    if ended.outcome is Outcome.STOPPED:
        return f"the system has stopped it: {ended.reason}"
    return ended.reason if keeps_alive else ""
