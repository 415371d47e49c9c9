"""Runs a report over data that a test makes, as a validation does: in a graph, with a padded last batch."""

from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.dataset import Dataset, Split
from accel_engine.data.structure import Batch, Structure, map_structure
from accel_engine.keras_support.losses import Loss
from accel_engine.run import diagnostics
from accel_engine.run.diagnostics import OutputReport, ValidationReport, packing
from accel_engine.training.core.task import Task
from accel_engine.training.evaluation.reports.choice import report_for
from accel_engine.training.evaluation.task_report import Predict, TaskReport

BATCH = 4


def dataset(inputs: Structure, targets: Structure = None, weights: Structure = None, **known: Any) -> Dataset:
    """A dataset whose validation examples are these."""
    split = Split(inputs, targets, weights)
    return Dataset("test", split, split, **known)


def reports(
    task: Task | str,
    data: Dataset,
    outputs: Structure,
    loss: Loss = None,
    *,
    encoded: Structure = None,
    scaled: Structure = None,
    predict: Predict | None = None,
    xla: bool = False,
    **options: Any,
) -> tuple[OutputReport, ...]:
    """The report of each output, stored and read.

    Args:
        task: The task or its name.
        data: The data.
        outputs: The model's outputs for all validation examples.
        loss: The model's loss.
        encoded: Targets as the loss gets them; the data's by default.
        scaled: Inputs as the model gets them.
        predict: Predicts other inputs.
        xla: Whether the graph is compiled.
        options: Arguments of ``report_for``.
    """
    split = data.validation
    assert isinstance(split, Split)
    task = Task(task) if isinstance(task, str) else task
    specs = map_structure(lambda array: tf.TensorSpec((None, *array.shape[1:]), array.dtype), outputs)
    report = report_for(task, data, specs, loss, **options)
    batch = Batch(
        split.inputs if scaled is None else scaled, split.targets if encoded is None else encoded, split.weights
    )
    batch = map_structure(lambda array: array.astype("S") if array.dtype.kind in "UO" else array, batch)
    values, totals = measured(report, batch, outputs, len(split), xla=xla)

    def read(rows: npt.NDArray[np.int64]) -> tuple[Batch, Structure]:
        return split.take(rows), map_structure(lambda array: array[rows], outputs)

    (item,) = report.build(values, totals, read, predict)
    assert isinstance(item, ValidationReport)
    head, body = diagnostics.serialize(item)
    assert len(head) + len(body) < 4e6
    return packing.unpack(__import__("json").loads(head), body).outputs


def measured(
    report: TaskReport, batch: Batch, outputs: Structure, examples: int, *, xla: bool = False
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]:
    """The values of all examples, and the sums, of batches of which the last is padded with the first examples."""

    # With XLA the size of a batch is known, otherwise it is not.
    def spec(array: npt.NDArray[Any]) -> tf.TensorSpec:
        return tf.TensorSpec((None, *array.shape[1:]), tf.constant(array[:1]).dtype)

    @tf.function(jit_compile=xla)
    def measure(batch: Batch, outputs: Structure, mask: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return report.measure(batch, outputs, mask)

    if not xla:
        measure = measure.get_concrete_function(*map_structure(spec, (batch, outputs)), tf.TensorSpec((None,)))
    values, totals = [], np.zeros(report.totals)
    for first in range(0, examples, BATCH):
        rows = np.arange(first, first + BATCH)
        mask = (rows < examples).astype(np.float32)
        some = map_structure(lambda array, rows=rows: tf.constant(array[rows % examples]), (batch, outputs))
        found, sums = measure(*some, tf.constant(mask))
        assert found.shape == (BATCH, report.width)
        assert sums.shape == (report.totals,)
        values.append(found.numpy()[mask > 0])
        totals += sums.numpy()
    return np.concatenate(values), totals
