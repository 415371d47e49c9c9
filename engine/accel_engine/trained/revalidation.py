"""Validates the last checkpoint of an ended run and saves its evaluation report."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from accel_engine.errors import RunError
from accel_engine.run import RunReader, RunWriter
from accel_engine.run.diagnostics import DiagnosticsItem
from accel_engine.run.directory.lock import WriterLock
from accel_engine.trained.examine import examine
from accel_engine.trained.open_trained import open_trained


def revalidate(directory: Path, on_progress: Callable[[int, int], None]) -> dict[str, Any]:
    """Predict every validation example and save the evaluation report in the run.

    Args:
        directory: Directory of a run that has ended and has a checkpoint.
        on_progress: Called now and then with the number of examples done, and of all.

    Returns:
        ``step``: the checkpoint's step. ``notes``: warnings for the user.

    Raises:
        AccelError: The run is active, its model cannot be validated, or its data means something else.
    """
    _check_ended(directory)
    trained = open_trained(directory, split="validation", progress=on_progress)
    _save_report(directory, examine(trained, on_progress), trained.step)
    return {"step": trained.step, "notes": list(trained.notes)}


def _check_ended(directory: Path) -> None:
    with closing(RunReader(directory)) as reader:
        info = reader.info()
    if info.status.live:
        raise RunError(f"run {directory.name} is active: its own engine can validate it")


def _save_report(directory: Path, items: tuple[DiagnosticsItem, ...], step: int) -> None:
    _check_ended(directory)  # if the run was continued in the meantime, its own report is newer
    try:
        with WriterLock(directory), closing(RunWriter(directory)) as writer:
            for item in items:
                writer.write_diagnostics(item, step)
    except BlockingIOError as error:
        raise RunError(f"run {directory.name} is being trained again") from error
