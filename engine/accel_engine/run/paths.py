"""Where runs live, and what the files of a run are called."""

import os
from pathlib import Path

import platformdirs

from accel_engine.errors import RunError

LOG = "log.txt"
"""The file with what an engine and the user's code print, in a run's directory."""

LOCK = "run.lock"
"""The file that a run's writer holds locked, likewise; see :mod:`accel_engine.run.lock`."""

MODEL = "model.keras"
"""The file of a run's trained model, likewise."""

CHECKPOINTS = "checkpoints"
"""The directory of a run's checkpoints, in the run's own."""

WORKERS = "workers"
"""The directory of what the other workers of a run write, each as a run of its own."""


def home() -> Path:
    """The program's directory: ``ACCEL_TUI_HOME``, or the platform's place for user data."""
    chosen = os.environ.get("ACCEL_TUI_HOME")
    return Path(chosen).expanduser() if chosen else platformdirs.user_data_path("accel-tui")


def runs_directory() -> Path:
    """The directory with a directory for every run; it may not exist yet."""
    return home() / "runs"


def make_private(directory: Path) -> None:
    """Make a directory that only its owner can enter.

    Raises:
        RunError: It cannot be made or written.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(
            f"cannot make the run directory {directory}: {error.strerror}; "
            "set ACCEL_TUI_HOME to a directory that you can write"
        ) from error
    if not os.access(directory, os.W_OK | os.X_OK):
        raise RunError(f"cannot write in the run directory {directory}; set ACCEL_TUI_HOME to one that you can write")


def trained_model(directory: Path) -> Path | None:
    """The file of a run's trained model; ``None`` when there is none."""
    model = directory / MODEL
    return model if model.is_file() else None


def latest_checkpoint(directory: Path) -> int:
    """The step of a run's last checkpoint; 0 when it has none."""
    steps = (path.stem.removeprefix("step-") for path in (directory / CHECKPOINTS).glob("step-*.index"))
    return max((int(step) for step in steps if step.isdigit()), default=0)
