"""Validating the model of an ended run's last checkpoint, for what the run looks like inside."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from accel_engine import data
from accel_engine.errors import DataError, ModelError, RunError
from accel_engine.models.traits import overrides_train_step
from accel_engine.plan import Plan
from accel_engine.run import RunReader, RunWriter, diagnostics
from accel_engine.run.diagnostics import EvaluationReport
from accel_engine.run.lock import WriterLock
from accel_engine.run.paths import latest_checkpoint
from accel_engine.run.status import RunInfo
from accel_engine.training.evaluation_report import OWN_STEP, EvaluationReportBuilder, intake_of
from accel_engine.training.restored_model import restored
from accel_engine.training.run_scaling import scale_of_data
from accel_engine.training.validation import LARGEST_BATCH

TELL_SECONDS = 0.2
"""How often it is told how far it is."""


def revalidate(directory: Path, tell: Callable[[int, int], None]) -> dict[str, Any]:
    """Show the model every validation example, and keep what it says of them in the run.

    Args:
        directory: A run's that has ended and has a checkpoint.
        tell: Told now and then how many examples were looked at, and of how many.

    Returns:
        ``step``: the checkpoint's.

    Raises:
        AccelError: The run goes on, or its model cannot be validated; why.
    """
    info = _ended(directory)
    step, plan = latest_checkpoint(directory), Plan.from_mapping(info.values)
    dataset = data.load(plan.data, image_size=plan.image_size, seed=plan.seed)
    split, recorded = dataset.validation, diagnostics.read(directory).input_spec
    intake = intake_of(dataset, recorded.scale if recorded else scale_of_data(plan, dataset))
    if split is None:
        raise DataError(f"{plan.data} has too few examples to set some aside, so there is nothing to validate on")
    model = restored(plan, intake, directory, step)
    if overrides_train_step(model.model):
        raise ModelError(OWN_STEP)

    def judge(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        return model.labels.judged(y, model.outputs(x))

    judged = tf.function(judge, reduce_retracing=True)
    examination, told = EvaluationReportBuilder(intake, split), time.monotonic()
    for first in range(0, len(split), LARGEST_BATCH):
        rows = np.arange(first, min(first + LARGEST_BATCH, len(split)), dtype=np.int32)
        x = split.x[rows] if isinstance(split.x, np.ndarray) else split.x.take(rows)
        examination.note(rows[np.newaxis], judged(x, split.y[rows]).numpy(), repeated=False)
        if time.monotonic() - told >= TELL_SECONDS:
            tell(first + len(rows), len(split))
            told = time.monotonic()
    _keep(directory, examination.result(), step)
    return {"step": step}


def _ended(directory: Path) -> RunInfo:
    with closing(RunReader(directory)) as reader:
        info = reader.info()
    if info.status.live:
        raise RunError(f"run {directory.name} goes on, and its own engine can validate it")
    return info


def _keep(directory: Path, found: EvaluationReport, step: int) -> None:
    _ended(directory)  # what its engine found meanwhile is newer
    try:
        with WriterLock(directory), closing(RunWriter(directory)) as writer:
            writer.write_diagnostics(found, step)
    except BlockingIOError as error:
        raise RunError(f"run {directory.name} is being trained again") from error
    except sqlite3.Error as error:
        raise RunError(f"cannot write the run {directory.name}: {error}") from error
