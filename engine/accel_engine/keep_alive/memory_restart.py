"""Starts a run again whose engine the system has killed as memory ran out, with a plan that takes less."""

from contextlib import closing
from pathlib import Path

from accel_engine.keep_alive.restart import OUT_OF_MEMORY, Restart
from accel_engine.launch import engine_process
from accel_engine.run import RunReader, reopen
from accel_engine.run.lock import is_held
from accel_engine.run.memory_kill import adapted, was_killed_for_memory
from accel_engine.run.run_paths import WATCHER_LOCK


def restart_with_less_memory(directory: Path) -> bool:
    """Start the engine of a lost run again, if memory was the reason and its plan can take less.

    Who follows a run calls this when it is lost, so that an old run is never started. A run with ``keep_alive`` has a
    process of its own for it.

    Returns:
        Whether an engine was started.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
        RunError: The run cannot be read or written.
    """
    if is_held(directory, WATCHER_LOCK) or not was_killed_for_memory(directory):
        return False
    found = adapted(directory)
    if found is None:
        return False
    with closing(RunReader(directory)) as reader:
        new = reader.new_steps()
    reason = "the system ended the engine, as memory ran out"
    action = f"the engine is started again, and {found.cure.action}"
    restart = Restart(OUT_OF_MEMORY, new.stop if new else 0, reason, action, dict(found.cure.changes))
    reopen(directory, found.plan)
    engine_process.start(directory, restart.environment)
    return True
