"""Starts the process that runs a search."""

import os
import subprocess
import sys
from pathlib import Path

from accel_engine import clock, hangup
from accel_engine.devices.installation import installed_versions
from accel_engine.errors import EngineMissingError, RunError
from accel_engine.run.directory import lock
from accel_engine.search.study_paths import LOCK, LOG

INSTALL = "pip install '.[search]' in a checkout of accel-tui"
"""How to install Optuna: the name of the package would find the extras of the version that is installed."""


def require_optuna() -> None:
    """Raise an error if Optuna is missing.

    Raises:
        EngineMissingError: It is.
    """
    if not installed_versions("optuna"):
        raise EngineMissingError(f"a search needs Optuna, which is not installed: {INSTALL}")


def is_running(directory: Path) -> bool:
    """Whether a process runs a search."""
    return lock.is_held(directory, LOCK)


def start(directory: Path) -> "subprocess.Popen[bytes]":
    """Start the process that runs a search; it ends at once if another one does.

    It is in a session of its own, and outlives the command, the dashboard and the terminal.

    Raises:
        EngineMissingError: Optuna is not installed.
        RunError: The search's log cannot be written, or the system cannot start a process.
    """
    require_optuna()
    try:
        log = os.open(directory / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise RunError(f"cannot write the log of the search {directory.name}: {error.strerror}") from error
    try:
        with hangup.held():
            return subprocess.Popen(
                [sys.executable, "-m", "accel_engine.search", str(directory), str(clock.now())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
    except OSError as error:
        raise RunError(f"cannot start the search {directory.name}: {error.strerror}") from error
    finally:
        os.close(log)
