"""Starts and continues runs. All functions block: call them from a thread."""

from collections.abc import Sequence
from pathlib import Path

from accel_engine.devices import detect
from accel_engine.devices.device_types import Device
from accel_engine.errors import EngineMissingError, RunError
from accel_engine.launch import engine_process
from accel_engine.launch.warm_engine import USABLE, WarmEngine
from accel_engine.plan import Plan, resolved_plan
from accel_engine.run import RunReader, Status, create
from accel_engine.run.creation import reopen
from accel_engine.run.worker_runs import run_to_continue

CONTINUABLE = frozenset({Status.STOPPED, Status.FAILED, Status.LOST})
"""The statuses of runs that can be continued: they ended before the last epoch."""


def start_run(plan: Plan, devices: Sequence[Device] | None, engine: WarmEngine | None) -> Path:
    """Create a run and hand it to an engine.

    Args:
        plan: The plan.
        devices: The devices of the machine; detected if ``None``.
        engine: A warm engine; without a usable one, a new process is started.

    Returns:
        The directory of the run.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
        PlanError: The plan does not fit the machine, the data or the model.
        DataError: The data cannot be read.
        RunError: The run cannot be written.
    """
    _require_engine()
    resolved_plan.check(plan, detect().devices if devices is None else devices)
    directory = create(plan)
    _hand_over(directory, engine)
    return directory


def continue_run(directory: Path, engine: WarmEngine | None) -> Path:
    """Continue an ended run from its last checkpoint.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
        RunError: The run cannot be read or written, is live, or is a worker run.
        UsageError: The environment describes an invalid cluster.
    """
    _require_engine()
    directory = run_to_continue(directory)
    reader = RunReader(directory)
    try:
        plan = reader.info().plan
    finally:
        reader.close()
    if plan is None:
        raise RunError(f"the plan of run {directory.name} cannot be read on this machine")
    reopen(directory, plan)
    _hand_over(directory, engine)
    return directory


def _require_engine() -> None:
    """Raise an error if TensorFlow is missing, before a run is created."""
    if problem := engine_process.find_installation().problem:
        raise EngineMissingError(problem)


def _hand_over(directory: Path, engine: WarmEngine | None) -> None:
    if engine is not None and engine.state in USABLE:
        try:
            engine.train(directory)
        except RunError:  # it has just exited; a new process reports any other problem
            engine.close()
        else:
            return
    engine_process.start(directory)
