"""Makes sure that somebody starts the runs that wait."""

import os
import subprocess
import sys
from contextlib import suppress

from accel_engine import hangup
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
    """Start that process, in a session of its own; it exits at once if there is one.

    Raises:
        OSError: It cannot be started.
    """
    directory = home().absolute()
    log = os.open(directory / WAITER_LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        with hangup.held():
            process = subprocess.Popen(
                [sys.executable, "-m", "accel_engine.run_queue"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | {"ACCEL_TUI_HOME": str(directory)},
                start_new_session=True,
            )
    finally:
        os.close(log)
    process.returncode = 0  # it outlives this process: without this, Python would warn of that at the exit
