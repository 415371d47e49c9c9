"""Whether a run was lost because memory ran out; starts it again with a plan that takes less."""

import signal
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from accel_engine.errors import RunError, UsageError
from accel_engine.events import OUT_OF_MEMORY
from accel_engine.json_values import decode_or_none
from accel_engine.keep_alive.restart import Restart
from accel_engine.plan import Plan
from accel_engine.plan.memory_remedies import MemoryFacts, next_repair
from accel_engine.process import engine_process
from accel_engine.run import RunReader, read_run, reopen
from accel_engine.run.directory.lock import is_locked
from accel_engine.run.directory.run_paths import WATCHER_LOCK, host_of_run
from accel_engine.run.engine.memory_loss import MemoryLoss
from accel_engine.run.engine.status import read_info
from accel_engine.run.store.database import reading, writing
from accel_engine.run.store.meta import effective_plan, read_meta


def restart_with_less_memory(directory: Path) -> bool:
    """Start the engine of a lost run again, if memory was the reason and its plan can take less.

    Who follows a run calls this when it is lost, so that an old run is never started. A run with ``keep_alive`` has its
    own process for it. Several may follow a run: one of them starts it.

    Returns:
        Whether an engine was started, by this process or another.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
        RunError: The run cannot be read or written, or the engine cannot be started.
    """
    if host_of_run(directory) or is_locked(directory, WATCHER_LOCK):  # on a host, whoever follows it there does it
        return False
    if read_run(directory, watched=False).place:  # its place starts it again, if anything does
        return False
    try:
        found = was_killed_for_memory(directory) and adapted(
            directory, "the system ended the engine, as memory ran out", "the engine is started again"
        )
        if not found:
            return _is_live(directory)
        plan, restart = found
        reopen(directory, plan)
    except RunError:
        if _is_live(directory):
            return True
        raise
    engine_process.start_engine(directory, restart.environment)
    return True


def _is_live(directory: Path) -> bool:
    return read_run(directory, watched=False).status.live


def was_killed_for_memory(directory: Path, exit_status: int | None = None) -> bool:
    """Whether a run was probably lost because memory ran out: the kernel killed its engine, or native code crashed.

    The run keeps the answer if the kernel's counters have given it, which may rise again for other reasons.

    Args:
        directory: The run's directory.
        exit_status: What its process returned, by ``Popen.returncode``, if this process has started it.

    Raises:
        RunError: The run cannot be read.
    """
    if exit_status is not None and exit_status >= 0:  # no signal ended it
        return False
    with closing(RunReader(directory, steps=False, past_phases=False)) as reader:
        loss = reader.info(watched=False).memory_loss
    if loss is MemoryLoss.KILLED:
        _keep(directory)
    return loss is not None and (loss is MemoryLoss.CRASHED or exit_status in (None, -signal.SIGKILL))


def _keep(directory: Path) -> None:
    """Write that a run was killed, unless its engine was started again meanwhile; a full disk does not take it."""
    with suppress(RunError), writing(directory) as database:
        if read_info(database, watched=False).memory_loss is MemoryLoss.KILLED:
            database.set_meta(memory_loss=MemoryLoss.KILLED.value)


def adapted(directory: Path, reason: str = "", action: str = "") -> tuple[Plan, Restart] | None:
    """The plan with which a killed run takes less memory, and its restart, from what its engine wrote.

    Args:
        directory: The run's directory.
        reason: Why its engine was lost.
        action: What is done, but for the changes of the plan.

    Returns:
        ``None`` if no remedy is left, the engine wrote no facts, the plan says ``--on-oom fail``, or accelerators
        train: their remedies save none of the host's memory, which ran out.

    Raises:
        RunError: The run cannot be read.
    """
    with reading(directory) as database:
        meta = read_meta(database)
    facts = decode_or_none(meta.get("memory"), MemoryFacts)
    try:
        plan = Plan.from_mapping(effective_plan(meta.get("plan", "")))
    except (UsageError, ValueError):
        return None
    if facts is None or not facts.on_host or plan.on_oom == "fail":
        return None
    repair = next_repair(plan, replace(facts, caches_data=False))  # no field of a plan says so
    if repair is None:
        return None
    with closing(RunReader(directory)) as reader:
        new = reader.new_steps()
    changes, action = dict(repair.changes), f"{action}, and {repair.action}"
    restart = Restart(OUT_OF_MEMORY, new.stop if new else 0, reason, action, changes, dict(facts.variables))
    return plan.replace(**changes), restart
