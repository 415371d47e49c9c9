"""Makes sure that somebody starts the runs that wait."""

from contextlib import suppress

from accel_engine.process.detached import leave, start_detached
from accel_engine.run.directory import lock
from accel_engine.run.directory.run_paths import home
from accel_engine.run_queue.queue_database import read_entries

WAITER_LOCK = "queue.lock"
"""File that the process which starts queued runs holds locked."""

WAITER_LOG = "queue.log"
"""File with the output of that process."""


def wake() -> None:
    """Start the process that starts queued runs, if runs wait and there is none. It never raises."""
    with suppress(Exception):  # whoever calls this has other things to do
        if any(not entry.held for entry in read_entries() if entry.state != "started") and not is_running():
            start_waiter()


def is_running() -> bool:
    """Whether a process starts the runs that wait."""
    return lock.is_held(home(), WAITER_LOCK)


def start_waiter() -> None:
    """Start that process; it exits at once if there is one.

    Raises:
        RunError: It cannot be started.
    """
    directory = home().absolute()
    process = start_detached(
        "the process that starts queued runs",
        "-m",
        "accel_engine.run_queue",
        log=directory / WAITER_LOG,
        environment={"ACCEL_TUI_HOME": str(directory)},
    )
    leave(process)
