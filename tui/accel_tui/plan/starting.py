"""From a plan to a run that an engine trains. All of it blocks: call it from a thread."""

from collections.abc import Sequence
from pathlib import Path

from accel_engine import launch, preflight
from accel_engine.devices import detect
from accel_engine.devices.reading import Device
from accel_engine.errors import EngineMissingError, RunError
from accel_engine.launch import USABLE, WarmEngine
from accel_engine.plan import Plan
from accel_engine.run import RunReader, Status, create
from accel_engine.run.creation import reopen
from accel_engine.run.worker_runs import run_to_continue

RESUMABLE = frozenset({Status.STOPPED, Status.FAILED, Status.LOST})
"""How a run stands that can be resumed: it ended before its plan did."""


def start(plan: Plan, devices: Sequence[Device] | None, engine: WarmEngine | None) -> Path:
    """Make a run of a plan and hand it to an engine.

    Args:
        plan: What to train.
        devices: The machine's; they are looked for when that was not done yet.
        engine: A warm engine; without a usable one, a cold one is started.

    Returns:
        The run's directory.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
        PlanError: The plan asks for what the machine, the data or the model cannot give.
        DataError: The user's data cannot be read.
        RunError: The run cannot be written.
    """
    _need_engine()
    preflight.check(plan, detect().devices if devices is None else devices)
    directory = create(plan)
    _hand_over(directory, engine)
    return directory


def resume(directory: Path, engine: WarmEngine | None) -> Path:
    """Let a run that ended or was lost go on from its last checkpoint.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
        RunError: The run cannot be read or written, is being trained already, or is a part of another.
        UsageError: What the environment says of a cluster is wrong.
    """
    _need_engine()
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


def _need_engine() -> None:
    """Refuse before there is a run that nobody would train."""
    if problem := launch.find_installation().problem:
        raise EngineMissingError(problem)


def _hand_over(directory: Path, engine: WarmEngine | None) -> None:
    if engine is not None and engine.state in USABLE:
        try:
            engine.train(directory)
        except RunError:  # it has just ended; what else may be wrong, a cold one meets too
            engine.close()
        else:
            return
    launch.start(directory)
