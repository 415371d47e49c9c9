"""Starts and continues searches for the dashboard; both functions block."""

from pathlib import Path

from accel_engine.devices import detect
from accel_engine.search.definition import StudyDefinition


def start_study(definition: StudyDefinition) -> Path:
    """Create a study, and start the process that runs it; returns the study's directory.

    Raises:
        AccelError: There is a study of this name, a trial's plan could not be trained, Optuna or TensorFlow is missing,
            or the study cannot be written.
    """
    from accel_engine.search.launch import start
    from accel_engine.search.new_study import begin

    directory = begin(definition, detect().devices)
    start(directory)
    return directory


def resume_study(directory: Path) -> None:
    """Start a process that continues a study; it ends at once if another one runs it.

    Raises:
        AccelError: Optuna is missing, or the process cannot be started.
    """
    from accel_engine.search.launch import start

    start(directory)
