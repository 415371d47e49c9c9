"""The directory of runs, and the names of the files of a run."""

import os
import pkgutil
import shlex
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import platformdirs

from accel_engine.errors import RunError
from accel_engine.files import private_directory
from accel_engine.run.directory.checkpoint_files import find_damage, first_whole, steps_in
from accel_engine.user_paths import user_path

LOG = "log.txt"
"""File in a run's directory with the output of the engine and the user's code."""

LOCK = "run.lock"
"""File that a run's writer holds locked; see :mod:`accel_engine.run.directory.lock`."""

WATCHER_LOCK = "watcher.lock"
"""File that the process locks which starts the run's engine again; see :mod:`accel_engine.keep_alive`."""

MODEL = "model.keras"
"""File of a run's trained model."""

CHECKPOINTS = "checkpoints"
"""Directory of a run's checkpoints."""

WORKERS = "workers"
"""Directory of the runs of a run's other workers."""


PROFILES = "profiles"
"""Directory of a run's traces, in the layout that XProf and TensorBoard read."""


def home() -> Path:
    """The program's directory: ``ACCEL_TUI_HOME``, or the platform's directory for user data."""
    chosen = os.environ.get("ACCEL_TUI_HOME")
    return user_path(chosen) if chosen else platformdirs.user_data_path("accel-tui")


def runs_directory() -> Path:
    """The directory of all runs; it may not exist yet."""
    return home() / "runs"


def hosts_directory() -> Path:
    """The directory with a directory for each other machine, whose ``runs`` mirrors the runs there."""
    return home() / "hosts"


def host_of_run(directory: Path) -> str:
    """Name of the host that a run's directory mirrors a run of; empty for a run of this machine."""
    return _host_of_runs(directory.parent, hosts_directory())


def check_is_here(directory: Path, instead: str) -> None:
    """Refuse the mirror of a run of a host.

    Args:
        directory: The run's directory.
        instead: What to do instead.

    Raises:
        RunError: It is a mirror.
    """
    if host := host_of_run(directory):
        raise RunError(f"run {directory.name} is on {host}: {instead}")


@lru_cache(maxsize=1024)
def _host_of_runs(runs: Path, hosts: Path) -> str:
    """The host of a directory of runs; kept, as lists ask for each of thousands of runs, and links are resolved."""
    is_mirror = runs.name == "runs" and runs.parent.parent in (hosts, hosts.resolve())
    return runs.parent.name if is_mirror else ""


def run_name(directory: Path) -> str:
    """A run's id; of a run of another machine, ``HOST:ID``."""
    host = host_of_run(directory)
    return f"{host}:{directory.name}" if host else directory.name


def plain_name(directory: Path) -> str:
    """A run's id without its code: of ``k3fp-digits`` ``digits``."""
    return directory.name.partition("-")[2] or directory.name


def reference(directory: Path) -> str:
    """The reference to a run for commands: its id, with the place of a worker's run; or its directory if elsewhere."""
    runs = runs_directory()
    if host_of_run(directory):
        return run_name(directory)
    return str(directory.relative_to(runs) if directory.is_relative_to(runs) else directory)


def host_function(name: str) -> Callable[..., Any]:
    """A function for runs whose directory mirrors a run of a host, as ``module:function`` of :mod:`accel_engine.hosts`.

    It is imported only now, as :mod:`accel_engine.hosts` imports this module.
    """
    return pkgutil.resolve_name(f"accel_engine.hosts.{name}")


def repair_command(directory: Path) -> str:
    """The command that saves what is whole of a damaged run."""
    return f"accel-tui repair {shlex.quote(reference(directory))}"


def make_private(directory: Path) -> None:
    """Create a directory, and those above it that are missing, which only its owner can enter.

    Raises:
        RunError: The directory cannot be created or written.
    """
    try:
        private_directory(directory)
    except OSError as error:
        raise RunError(
            f"cannot create the run directory {directory}: {error.strerror}; set ACCEL_TUI_HOME to a writable directory"
        ) from error
    if not os.access(directory, os.W_OK | os.X_OK):
        raise RunError(f"cannot write to the run directory {directory}; set ACCEL_TUI_HOME to a writable directory")


def trained_model(directory: Path) -> Path | None:
    """The file of a run's trained model; ``None`` when there is none."""
    model = directory / MODEL
    return model if model.is_file() else None


def checkpoint_steps(directory: Path) -> list[int]:
    """The steps of a run's checkpoints, in increasing order; some may be damaged."""
    return steps_in(directory / CHECKPOINTS)


def latest_checkpoint(directory: Path) -> int:
    """The step of a run's last checkpoint of which no file is missing or cut short; 0 if it has no checkpoint.

    If all are damaged it is the last one: training does not start anew over it, but says what is damaged.
    """
    steps = checkpoint_steps(directory)
    whole, _ = first_whole(reversed(steps), lambda step: find_damage(directory / CHECKPOINTS, step, quick=True))
    return max(steps, default=0) if whole is None else whole
