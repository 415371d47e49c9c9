"""Validates the last checkpoint of an ended run and saves its evaluation report."""

from contextlib import closing
from pathlib import Path

from accel_engine.errors import RunError
from accel_engine.requests.protocol.request import Send, reports, unheard
from accel_engine.requests.revalidate import Revalidation, RevalidationRequest
from accel_engine.run import RunReader, RunWriter
from accel_engine.run.diagnostics import DiagnosticsItem
from accel_engine.run.directory.lock import WriterLock
from accel_engine.trained.examine import examine
from accel_engine.trained.open_trained import open_trained


def revalidate(request: RevalidationRequest, send: Send = unheard) -> Revalidation:
    """Predict every validation example and save the evaluation report in the run.

    Args:
        request: Names a run that has ended and has a checkpoint.
        send: Takes how far it is.

    Raises:
        AccelError: The run is active, its model cannot be validated, or its data means something else.
    """
    directory = request.directory
    _check_ended(directory)
    trained = open_trained(directory, split="validation", progress=reports(send))
    _save_report(directory, examine(trained, reports(send)), trained.step)
    return Revalidation(trained.step, trained.notes)


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
