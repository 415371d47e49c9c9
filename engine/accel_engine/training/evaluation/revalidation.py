"""Validates the last checkpoint of an ended run and saves its evaluation report."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from accel_engine import data
from accel_engine.data.dataset import Split
from accel_engine.data.structure import Batch, flatten, map_structure
from accel_engine.errors import DataError, ModelError, RunError
from accel_engine.keras_support.model_call import call_model
from accel_engine.keras_support.model_structure import has_custom_train_step
from accel_engine.plan import Plan
from accel_engine.run import RunReader, RunWriter, diagnostics
from accel_engine.run.chosen_checkpoint import chosen_step
from accel_engine.run.diagnostics import DiagnosticsItem
from accel_engine.run.lock import WriterLock
from accel_engine.run.status import RunInfo
from accel_engine.training.checkpoints.restored_model import restore_model
from accel_engine.training.core.changed_data import check_restorable
from accel_engine.training.core.run_scaling import scale_of_data
from accel_engine.training.evaluation.input_specs import input_spec_of
from accel_engine.training.evaluation.reports.choice import CUSTOM_STEP_REASON, report_for
from accel_engine.training.evaluation.split_batches import ProgressReports, batches, known_count
from accel_engine.training.evaluation.worst_examples import WorstExamples


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
    info = _read_ended_run(directory)
    notes: list[str] = []
    step, plan = chosen_step(directory, notes.append), Plan.from_mapping(info.plan_values)
    keras.utils.set_random_seed(plan.seed)  # as in training: a function may make its data at random
    dataset, stored = data.load(plan.data, plan.data_options), diagnostics.read(directory)
    notes += check_restorable(dataset, plan, stored)
    examples, recorded = dataset.validation, stored.input_spec
    if examples is None:
        raise DataError(f"{plan.data} has no validation examples")
    scale = recorded.scale if recorded else scale_of_data(plan, dataset)
    model = restore_model(plan, dataset, lambda _: scale, directory, step)
    if has_custom_train_step(model.model):
        raise ModelError(CUSTOM_STEP_REASON)
    spec = input_spec_of(dataset, scale)
    limits = (spec.low, spec.high) if spec else None
    names = getattr(model.model, "output_names", None) or ()
    report = report_for(
        model.task, dataset, model.output_specs, model.model.loss, scale=scale, limits=limits, output_names=names
    )

    def measure(raw: Batch) -> tuple[tf.Tensor, tf.Tensor]:
        batch = model.prepare(raw)
        outputs = call_model(model.model, batch.inputs, training=False)
        return report.measure(batch, outputs, tf.ones([tf.shape(flatten(batch)[0])[0]]))

    measure_batch = tf.function(measure, reduce_retracing=True)
    worst = WorstExamples(examples, report, tf.function(model.outputs, reduce_retracing=True))
    totals, reports = np.zeros(report.totals), ProgressReports(on_progress, known_count(examples))
    for rows, raw in batches(examples):
        values, sums = measure_batch(map_structure(tf.convert_to_tensor, raw))
        totals += sums.numpy()
        by_row = rows[np.newaxis] if isinstance(examples, Split) else None
        worst.add(values.numpy(), int(rows[0]), by_row, raw, repeated=False)
        reports.add(int(rows[-1]) + 1)
    _save_report(directory, report.build(worst.values, totals, worst.read, worst.predict), step)
    return {"step": step, "notes": notes}


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
