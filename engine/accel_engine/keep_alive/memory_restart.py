"""Starts a run again whose engine the system has killed as memory ran out, with a plan that takes less."""

from contextlib import closing
from pathlib import Path

from accel_engine.errors import RunError
from accel_engine.events import OUT_OF_MEMORY
from accel_engine.keep_alive.restart import Restart
from accel_engine.plan import Plan
from accel_engine.process import engine_process
from accel_engine.run import RunReader, reopen
from accel_engine.run.directory.lock import is_held
from accel_engine.run.directory.run_paths import WATCHER_LOCK
from accel_engine.run.history.memory_kill import adapted, was_killed_for_memory


def restart_with_less_memory(directory: Path) -> bool:
    """Start the engine of a lost run again, if memory was the reason and its plan can take less.

    Who follows a run calls this when it is lost, so that an old run is never started. A run with ``keep_alive`` has a
    process of its own for it. Several may follow a run: one of them starts it.

    Returns:
        Whether an engine was started, by this process or another.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
        RunError: The run cannot be read or written, or the engine cannot be started.
    """
    if is_held(directory, WATCHER_LOCK):
        return False
    try:
        found = was_killed_for_memory(directory) and adapted_restart(
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
    engine_process.start(directory, restart.environment)
    return True


def adapted_restart(directory: Path, reason: str, action: str) -> tuple[Plan, Restart] | None:
    """The plan with which a killed run takes less memory, and its restart; ``None`` if nothing is left to do.

    Args:
        directory: The run's directory.
        reason: Why its engine was lost.
        action: What is done, but for the changes of the plan.
    """
    found = adapted(directory)
    if found is None:
        return None
    with closing(RunReader(directory)) as reader:
        new = reader.new_steps()
    action = f"{action}, and {found.cure.action}"
    failed_step = new.stop if new else 0
    changes, variables = dict(found.cure.changes), dict(found.variables)
    return found.plan, Restart(OUT_OF_MEMORY, failed_step, reason, action, changes, variables)


def _is_live(directory: Path) -> bool:
    with closing(RunReader(directory, steps=False)) as reader:
        return reader.info(watched=False).status.live
