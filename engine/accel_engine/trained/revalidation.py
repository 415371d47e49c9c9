"""Validates the last checkpoint of an ended run and saves its evaluation report."""

from contextlib import closing
from pathlib import Path

import keras

from accel_engine import data
from accel_engine.errors import DataError, RunError
from accel_engine.plan import Plan
from accel_engine.requests.protocol.request import Send, reports, unheard
from accel_engine.requests.revalidate import Revalidation, RevalidationRequest
from accel_engine.run import RunReader, RunWriter, diagnostics
from accel_engine.run.diagnostics import DiagnosticsItem
from accel_engine.run.directory.lock import WriterLock
from accel_engine.run.engine.status import RunInfo
from accel_engine.run.history.chosen_checkpoint import chosen_step
from accel_engine.trained.examine import examine
from accel_engine.trained.restored_model import restore_model
from accel_engine.training.core.changed_data import check_restorable
from accel_engine.training.core.run_scaling import scale_of_data


def revalidate(request: RevalidationRequest, send: Send = unheard) -> Revalidation:
    """Predict every validation example and save the evaluation report in the run.

    Args:
        request: Names a run that has ended and has a checkpoint.
        send: Takes how far it is.

    Raises:
        AccelError: The run is active, its model cannot be validated, or its data means something else.
    """
    directory = request.directory
    info = _read_ended_run(directory)
    notes: list[str] = []
    step, plan = chosen_step(directory, notes.append), Plan.of_trained_run(info.plan_values)
    keras.utils.set_random_seed(plan.seed)  # as in training: a function may make its data at random
    dataset, stored = data.load(plan.data, plan.data_options), diagnostics.read(directory)
    notes += check_restorable(dataset, plan, stored)
    recorded = stored.input_spec
    if dataset.validation is None:
        raise DataError(f"{plan.data} has no validation examples")
    scale = recorded.scale if recorded else scale_of_data(plan, dataset)
    model = restore_model(plan, dataset, lambda _: scale, directory, step)
    _save_report(directory, examine(model, dataset, scale, plan.batch_size, reports(send)), step)
    return Revalidation(step, tuple(notes))


def _read_ended_run(directory: Path) -> RunInfo:
    with closing(RunReader(directory)) as reader:
        info = reader.info()
    if info.status.live:
        raise RunError(f"run {directory.name} is active: its own engine can validate it")
    return info


def _save_report(directory: Path, items: tuple[DiagnosticsItem, ...], step: int) -> None:
    _read_ended_run(directory)  # if the run was continued in the meantime, its own report is newer
    try:
        with WriterLock(directory), closing(RunWriter(directory)) as writer:
            for item in items:
                writer.write_diagnostics(item, step)
    except BlockingIOError as error:
        raise RunError(f"run {directory.name} is being trained again") from error
