"""Starts and continues runs: checks the plan, writes the run's directory and hands it to an engine.

All functions block; the dashboard calls them from a thread.
"""

import os
import subprocess
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import Any

from accel_engine.devices import detect
from accel_engine.devices.device_types import Device
from accel_engine.errors import RunError
from accel_engine.plan import Plan, resolved_plan
from accel_engine.plan.disk_estimate import estimate_disk
from accel_engine.plan.fit_checks import effect_errors
from accel_engine.plan.plan_checks import without_ignored
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.process import engine_process
from accel_engine.process.warm_engine import USABLE, WarmEngine
from accel_engine.run import Status, create, read_run
from accel_engine.run.directory.checkpoint_files import check_any_whole
from accel_engine.run.directory.disk_space import check_free_space, shortage
from accel_engine.run.directory.run_paths import (
    CHECKPOINTS,
    host_function,
    host_of_run,
    latest_checkpoint,
    runs_directory,
)
from accel_engine.run.runs.creation import reopen
from accel_engine.run.runs.worker_runs import run_to_continue
from accel_engine.strategies.cluster_spec import ClusterSpec

CONTINUABLE = frozenset({Status.STOPPED, Status.FAILED, Status.LOST})
"""The statuses of runs that can be continued: they ended before the last epoch."""


def prepare_run(
    plan: Plan,
    devices: Sequence[Device] | None = None,
    warn: Callable[[str], object] = lambda _: None,
    *,
    queued: bool = False,
    study: str = "",
    trial: int | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Path:
    """Create a run for an engine to train.

    Args:
        plan: The plan.
        devices: The devices of the machine; detected if ``None``.
        warn: Called with a warning if the disk may become full.
        queued: Whether it waits in the queue; see :func:`accel_engine.run.create`.
        study: Name of the search that it is a trial of; empty for none.
        trial: Number of that trial.
        environment: Environment variables of its engine, which may describe a cluster.

    Returns:
        The run's directory.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
        PlanError: The plan does not fit the machine, the data or the model.
        DataError: The data cannot be read.
        RunError: The run cannot be written, or the disk has no room for it.
    """
    checked = _checked(plan, devices, environment=environment)
    _check_disk(runs_directory(), checked, 0, warn)
    return create(checked.plan, queued=queued, study=study, trial=trial)


def prepare_continuation(
    directory: Path,
    changes: Mapping[str, Any] | None = None,
    warn: Callable[[str], object] = lambda _: None,
    *,
    queued: bool = False,
    devices: Sequence[Device] | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Path:
    """Reopen an ended run, for an engine to continue from its last checkpoint; a run of a host continues there at once.

    Args:
        directory: The run's directory.
        changes: New values of plan fields.
        warn: Called with a warning if the disk may become full.
        queued: Whether it waits in the queue until it is continued.
        devices: The devices of the machine; detected if ``None``.
        environment: Environment variables of its engine, which may describe a cluster.

    Returns:
        The directory to continue: in a worker's process, the directory of the worker's run.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
        RunError: The run is live, has no whole checkpoint, is a worker's run, or cannot be read or written.
        PlanError: A changed field must not change, does not fit, or all epochs are already trained.
        UsageError: The environment describes an invalid cluster.
    """
    if host_of_run(directory):
        _, warnings = host_function("runs_there:continue_there")(directory, changes, queued=queued)
        for warning in warnings:
            warn(warning)
        return directory
    directory = run_to_continue(directory, environment)
    info = read_run(directory)
    if info.status is Status.PAUSED:
        raise RunError(f"run {info.id} is paused: resume it with accel-tui resume {info.id}")
    if info.status.live:
        raise RunError(f"run {info.id} is {info.status}: follow it with accel-tui watch {info.id}")
    if not latest_checkpoint(directory) and ClusterSpec.find(environment) is None:  # other workers may have one
        anew = f": train it again with {for_a_new_run(info.plan).command()}" if info.plan else ""
        raise RunError(f"run {info.id} has no checkpoint to continue from{anew}")
    check_any_whole(directory / CHECKPOINTS)
    changes = changes or {}
    values = without_ignored({**info.plan_values, **changes}, wanted={*changes, "patience", "restore_best"})
    checked = _checked(Plan.from_mapping(values), devices, chosen=changes, environment=environment)
    _check_disk(directory, checked, latest_checkpoint(directory), warn)
    reopen(directory, checked.plan, queued=queued)
    return directory


def start_on_engine(directory: Path, engine: WarmEngine | None) -> "subprocess.Popen[str]":
    """Hand a run to a warm engine; without a usable one, start a new process.

    Returns:
        The engine's process.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
        RunError: The run cannot be written.
    """
    if engine is not None and engine.state in USABLE:
        try:
            engine.train(directory)
        except RunError:  # it has just exited; a new process reports any other problem
            engine.close()
        else:
            return engine.process
    return engine_process.start_engine(directory)


def for_a_new_run(plan: Plan) -> Plan:
    """A plan without the fields that have no effect here, with which a new run would be refused."""
    situation = resolved_plan.resolve(plan).situation(detect().devices)
    dropped = {error.field for error in effect_errors(situation)}
    return Plan.from_mapping(without_ignored({n: v for n, v in plan.to_mapping().items() if n not in dropped}))


def _checked(
    plan: Plan,
    devices: Sequence[Device] | None,
    *,
    chosen: Container[str] = resolved_plan.ALL_FIELDS,
    environment: Mapping[str, str],
) -> ResolvedPlan:
    """The plan with the model that ``auto`` stands for, if the data tells it before it is read.

    Raises an error, before a run is written, if the plan cannot be trained on this machine.
    """
    devices = detect().devices if devices is None else devices
    resolved = resolved_plan.resolve_to_train(plan, devices, chosen=chosen, environment=environment)
    engine_process.require_installation()
    return resolved.with_chosen_model()


def _check_disk(directory: Path, resolved: ResolvedPlan, done: int, warn: Callable[[str], object]) -> None:
    """Compare what is free with what the steps take that are left; the engine knows the size of checkpoints, too."""
    check_free_space(directory)
    steps = resolved.step_counts.total_steps if resolved.step_counts else 0
    if short := shortage(directory, estimate_disk(resolved.plan, max(0, steps - done))):
        warn(short)
