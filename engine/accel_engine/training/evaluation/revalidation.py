"""Validates the last checkpoint of an ended run and saves its evaluation report."""

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from accel_engine import data
from accel_engine.errors import DataError, ModelError, RunError
from accel_engine.keras_support.model_structure import has_custom_train_step
from accel_engine.plan import Plan
from accel_engine.run import RunReader, RunWriter, diagnostics
from accel_engine.run.diagnostics import EvaluationReport
from accel_engine.run.lock import WriterLock
from accel_engine.run.run_paths import latest_checkpoint
from accel_engine.run.status import RunInfo
from accel_engine.training.checkpoints.restored_model import restore_model
from accel_engine.training.core.run_scaling import scale_of_data
from accel_engine.training.evaluation.evaluation_report import (
    CUSTOM_STEP_REASON,
    EvaluationReportBuilder,
    input_spec_of,
)
from accel_engine.training.evaluation.validation import MAX_BATCH

PROGRESS_SECONDS = 0.2
"""How often progress is reported."""


def revalidate(directory: Path, on_progress: Callable[[int, int], None]) -> dict[str, Any]:
    """Predict every validation example and save the evaluation report in the run.

    Args:
        directory: Directory of a run that has ended and has a checkpoint.
        on_progress: Called now and then with the number of examples done, and of all.

    Returns:
        ``step``: the checkpoint's step.

    Raises:
        AccelError: The run is active, or its model cannot be validated.
    """
    info = _read_ended_run(directory)
    step, plan = latest_checkpoint(directory), Plan.from_mapping(info.plan_values)
    dataset = data.load(plan.data, image_size=plan.image_size, seed=plan.seed)
    split, recorded = dataset.validation, diagnostics.read(directory).input_spec
    input_spec = input_spec_of(dataset, recorded.scale if recorded else scale_of_data(plan, dataset))
    if split is None:
        raise DataError(f"{plan.data} has too few examples for a validation split")
    model = restore_model(plan, input_spec, directory, step)
    if has_custom_train_step(model.model):
        raise ModelError(CUSTOM_STEP_REASON)

    def predict(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        return model.label_encoding.predictions(y, model.outputs(x))

    predict_batch = tf.function(predict, reduce_retracing=True)
    report_builder, reported_at = EvaluationReportBuilder(input_spec, split), time.monotonic()
    for first in range(0, len(split), MAX_BATCH):
        rows = np.arange(first, min(first + MAX_BATCH, len(split)), dtype=np.int32)
        x = split.x[rows] if isinstance(split.x, np.ndarray) else split.x.take(rows)
        report_builder.add_batch(rows[np.newaxis], predict_batch(x, split.y[rows]).numpy(), repeated=False)
        if time.monotonic() - reported_at >= PROGRESS_SECONDS:
            on_progress(first + len(rows), len(split))
            reported_at = time.monotonic()
    _save_report(directory, report_builder.build(), step)
    return {"step": step}


def _read_ended_run(directory: Path) -> RunInfo:
    with closing(RunReader(directory)) as reader:
        info = reader.info()
    if info.status.live:
        raise RunError(f"run {directory.name} is active: its own engine can validate it")
    return info


def _save_report(directory: Path, report: EvaluationReport, step: int) -> None:
    _read_ended_run(directory)  # if the run was continued in the meantime, its own report is newer
    try:
        with WriterLock(directory), closing(RunWriter(directory)) as writer:
            writer.write_diagnostics(report, step)
    except BlockingIOError as error:
        raise RunError(f"run {directory.name} is being trained again") from error
