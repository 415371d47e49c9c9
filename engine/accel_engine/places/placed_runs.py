"""Gives runs to places, and asks about and cancels those that wait there."""

import json
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from accel_engine.deploy_folder.rendering import dns_label
from accel_engine.deploy_folder.write_folder import check_folder, writing_folder
from accel_engine.devices.device_types import Device
from accel_engine.errors import AccelError, FieldValue, PlanError, RunError, UsageError
from accel_engine.files import replacing
from accel_engine.keep_alive.restart import STARTED_BY_PLACE
from accel_engine.places import PlaceName, PlaceRequest, parse_place
from accel_engine.places.kubernetes import Kubernetes
from accel_engine.places.launched import LaunchedPlace
from accel_engine.places.own_process import is_to_start_again, may_start_again, set_place
from accel_engine.places.place import ArrayPlace, JobState, Place, PlacedJob
from accel_engine.places.ray_cluster import RayCluster
from accel_engine.places.slurm import Slurm
from accel_engine.places.ssh_hosts import SshHosts
from accel_engine.places.written_places import SkyPilot, Xpk
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import ResolvedPlan, resolve_to_train
from accel_engine.run import read_run
from accel_engine.run.store.meta import PlacedRun
from accel_engine.run.writing.waiting_run import handing_over
from accel_engine.strategies.tpu_endpoint import ELSEWHERE

ASK_SECONDS = 5.0
"""How long an answer of a place's engine is used before it is asked again, as many may watch."""

END_SECONDS = 60.0
"""How long a job that is cancelled may take to end."""

_PORT = 12345
"""A port in an example of the cluster of a job, which has no addresses yet."""

PLAN_FILE = "plan.json"
"""The plan, in the folder of a job that is only written."""

LINK = "run"
"""The link to the run, in the folder of a job that is only written."""

_PLACES: dict[str, type[Place]] = {
    "slurm": Slurm,
    "kubernetes": Kubernetes,
    "ray": RayCluster,
    "hosts": SshHosts,
    "skypilot": SkyPilot,
    "xpk": Xpk,
}
"""By the kind of a name."""

_asked: dict[str, tuple[float, JobState]] = {}
"""When each job was asked about, and the answer."""


def open_place(name: PlaceName) -> Place:
    """The place of a name."""
    return _PLACES[name.kind](name)


def cluster_environment(nodes: int) -> dict[str, str]:
    """The environment of a process of a job, as far as checks of its plan need it.

    Args:
        nodes: The number of its machines.
    """
    if nodes == 1:
        return {ELSEWHERE: "1"}
    workers = [f"node{index}:{_PORT}" for index in range(nodes)]
    config = json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": 0}})
    return {"TF_CONFIG": config, ELSEWHERE: "1"}


def check_strategy(plan: Plan, request: PlaceRequest) -> None:
    """Check that a plan's strategy fits the number of machines.

    Raises:
        PlanError: The strategy needs more or fewer machines, or is not started by a place.
    """
    strategy, nodes = plan.strategy, request.nodes or 1
    if strategy == "parameter-server" and not plan.local_workers:
        reason = "is started by accel-tui cluster on each machine, not by a place: use "
        raise PlanError("strategy", strategy, reason, FieldValue("strategy", "multi-worker"))
    if nodes > 1 and strategy != "multi-worker":
        reason = f"trains on one machine: {nodes} machines (--nodes) take "
        raise PlanError("strategy", strategy, reason, FieldValue("strategy", "multi-worker"))
    if strategy == "multi-worker" and nodes == 1 and not plan.local_workers:
        raise PlanError("strategy", strategy, "takes several machines: give --nodes 2, or more")


def submit(
    place: Place,
    request: PlaceRequest,
    plan: Plan,
    devices: Sequence[Device],
    open_run: Callable[[], Path],
    *,
    is_new: bool = True,
) -> Path:
    """Give a run to a place.

    Args:
        place: The place.
        request: What the run asks of it.
        plan: The run's plan.
        devices: The devices of one of the place's machines.
        open_run: Creates or reopens the run, which then waits.
        is_new: Whether it creates the run.

    Returns:
        The run's directory.

    Raises:
        PlanError: The plan does not fit the place.
        UsageError: The place cannot start such a run.
        RunError: The place does not take the run, or the run cannot be written.
    """
    resolved = check_at_place(place, request, plan, devices)
    directory = open_run()
    with handing_over(directory, "its place has not taken it", is_new=is_new):
        hand_over(place, request, resolved, directory)
    return directory


def check_at_place(place: Place, request: PlaceRequest, plan: Plan, devices: Sequence[Device]) -> ResolvedPlan:
    """Check that a place can start a plan; returns it placed on the devices of one of its machines.

    Raises:
        PlanError: The plan does not fit the place.
        UsageError: The place cannot start such a run.
    """
    resolved = _resolved(plan, request, devices)
    place.files(PlacedJob(resolved, request, Path("run")))
    return resolved


def hand_over(place: Place, request: PlaceRequest, resolved: ResolvedPlan, directory: Path) -> None:
    """Give a run that waits to a place; the run does not change if the place does not accept it.

    Raises:
        RunError: The place does not take the run, or the run cannot be written.
    """
    job = PlacedJob(resolved, request, directory.absolute())
    try:
        for name, text in place.files(job).items():
            with replacing(directory / name) as unfinished:
                unfinished.write_text(text, "utf-8")
    except OSError as error:
        raise RunError(f"cannot write {error.filename}: {error.strerror}") from error
    number = place.submit(job)
    if not isinstance(place, LaunchedPlace):  # whose process writes it from now on
        set_place(directory, PlacedRun(str(place.name), number, options=place.options(request)))


def hand_over_together(
    place: Place, request: PlaceRequest, runs: Mapping[Path, ResolvedPlan], folder: Path, at_once: int
) -> None:
    """Give runs that wait to a place, as one job if it has arrays; runs that it does not accept do not change.

    Args:
        place: The place.
        request: What each asks of it.
        runs: Their plans by directory.
        folder: Where files that concern several of them are written.
        at_once: Most of them that run at the same time.

    Raises:
        RunError: The place does not take some of them, or they cannot be written.
    """
    if len(runs) == 1 or not isinstance(place, ArrayPlace):
        for directory, resolved in runs.items():
            hand_over(place, request, resolved, directory)
        return
    jobs = [PlacedJob(resolved, request, directory.absolute()) for directory, resolved in runs.items()]
    for job, number in place.submit_together(jobs, folder.absolute(), at_once):
        set_place(job.directory, PlacedRun(str(place.name), number, options=place.options(request)))


def submit_plan(place: Place, request: PlaceRequest, plan: Plan, devices: Sequence[Device]) -> str:
    """Give a plan to a place that makes the run itself, on a disk that is not here.

    Returns:
        What the place's engine calls it.

    Raises:
        PlanError: The plan does not fit the place.
        UsageError: The place cannot start such a run.
        RunError: The place does not take it.
    """
    resolved = _resolved(plan, request, devices)
    name = f"{dns_label(plan.title)[:33].rstrip('-')}-{secrets.token_hex(3)}"  # a label of at most 40 characters
    return place.submit(PlacedJob(resolved, request, Path(name), Path(PLAN_FILE)))


def write_place_files(place: Place, request: PlaceRequest, plan: Plan, devices: Sequence[Device]) -> list[str]:
    """Write the files with which a place starts a plan, and its plan; starts nothing.

    Returns:
        The names of the files.

    Raises:
        PlanError: The plan does not fit the place.
        UsageError: The place cannot start such a run, or the folder has other files.
        RunError: The files cannot be written.
    """
    folder = Path(request.write).absolute()
    check_folder(folder, replaces=False)
    resolved = _resolved(plan, request, devices)
    job = PlacedJob(resolved, request, folder / LINK, folder / PLAN_FILE)
    files = {**place.files(job), PLAN_FILE: resolved.plan.absolute().to_json() + "\n"}
    with writing_folder(folder) as unfinished:
        for name, text in files.items():
            (unfinished / name).write_text(text, "utf-8")
    return sorted(files)


def state_of(placed: PlacedRun, *, newest: bool = False) -> JobState:
    """The state of a run at its place, now or at most :data:`ASK_SECONDS` ago.

    Raises:
        UsageError: This program does not know the place, or cannot reach it from here.
        RunError: The place's engine cannot be asked.
    """
    if os.environ.get(STARTED_BY_PLACE) == placed.place:  # this process is within the job
        return JobState(runs=True, reason="the engine starts")
    key, now = f"{placed.place} {placed.job}", time.monotonic()
    if newest or key not in _asked or now - _asked[key][0] > ASK_SECONDS:
        _asked[key] = now, place_of(placed).state(placed.job)
    return _asked[key][1]


def cancel_job(placed: PlacedRun) -> None:
    """Cancel a run's job at its place.

    Raises:
        UsageError: This program does not know the place, or cannot reach it from here.
        RunError: The place's engine cannot be asked.
    """
    place_of(placed).cancel(placed.job)


def starts_again(directory: Path, *, newest: bool = False) -> bool | None:
    """Whether the place of a run that has ended starts it again; if so, the run waits for that.

    Args:
        directory: The run's directory.
        newest: As for :func:`state_of`.

    Returns:
        ``None`` while the run's job has yet to say so; ``False`` also if that is unknown.
    """
    try:
        info = read_run(directory, watched=False)
        if info.status.live:
            return True
        if info.place is None or not may_start_again(directory):
            return False
        state = state_of(info.place, newest=newest)
        return is_to_start_again(directory) if state.waits else None if state.runs else False
    except AccelError:
        return False


def end_job(placed: PlacedRun) -> None:
    """End the job of a run that has ended, so that another one can train the run; waits until it is over, if it can."""
    until = time.monotonic() + END_SECONDS
    with suppress(AccelError):
        if not state_of(placed, newest=True).is_over:
            cancel_job(placed)
        while time.monotonic() < until and not state_of(placed, newest=True).is_over:
            time.sleep(1.0)


def place_of(placed: PlacedRun) -> Place:
    """The place where a run was started.

    Raises:
        UsageError: This program does not know the place.
    """
    name = parse_place(placed.place)
    if name is None:
        raise UsageError("the run was started on this machine")
    return open_place(name)


def _resolved(plan: Plan, request: PlaceRequest, devices: Sequence[Device]) -> ResolvedPlan:
    check_strategy(plan, request)
    environment = cluster_environment(request.nodes or 1)
    return resolve_to_train(plan, devices, environment=environment).with_chosen_model()
