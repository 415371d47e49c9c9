"""Measures the predictions of :mod:`accel_engine.data.baseline` on the evaluated examples, in the task's metrics."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data import baseline
from accel_engine.data.dataset import Dataset
from accel_engine.data.structure import Batch, Structure, flatten
from accel_engine.private_names.keras_names import mask_of
from accel_engine.training.core.recipe.metrics import is_regression
from accel_engine.training.core.task import Task
from accel_engine.training.evaluation.reports.forecast import horizon_and_series
from accel_engine.training.evaluation.reports.measures import broadcast, class_indices, counted_cells

MAX_LABELS = 1 << 17
"""Most classes of which the labels are counted; with more there is no baseline."""

_NUMBERS = 6
"""Sums of each column: absolute and squared errors in the targets' unit; squared errors, differences of the targets
from a number near their mean, and their squares, before scaling; and the number of examples."""


@dataclass(frozen=True, slots=True)
class BaselineResult:
    """The metrics of the baseline."""

    name: str
    """What it predicts: ``most frequent class: cat``, ``mean of the training targets``, ``last known value``."""
    metrics: dict[str, float]
    """By the names of the task's metrics: ``accuracy``, or ``mean_absolute_error``, ``root_mean_squared_error``
    (both in the targets' unit) and ``r2_score``."""


class Baseline(Protocol):
    """A prediction that is measured beside a model's, batch by batch."""

    width: int
    """Number of values that are summed over all batches."""

    def measure(self, batch: Batch, outputs: Structure, mask: tf.Tensor) -> tf.Tensor:
        """The sums that a batch adds, float32 ``[width]``; in a graph.

        Args:
            batch: As the model and its loss take it.
            outputs: The model's outputs, of which the shape and the mask of tokens count.
            mask: 1 for each example, 0 for padding, float32 ``[batch]``.
        """

    def result(self, sums: npt.NDArray[np.float64]) -> BaselineResult | None:
        """Its metrics, from the sums of all batches; ``None`` if there were no targets to compare with."""


def baseline_of(task: Task, dataset: Dataset, outputs: Structure, *, is_training_data: bool = True) -> Baseline | None:
    """The baseline of a model with a single output; ``None`` where there is none.

    Args:
        task: What it learns.
        dataset: Its data.
        outputs: The spec of its output, with the batch.
        is_training_data: Whether the model was trained on the training split of this data.
    """
    leaves = flatten(outputs) if outputs is not None else []
    if len(leaves) != 1 or dataset.spec.targets is None:
        return None
    output, targets = leaves[0], baseline.training_targets(dataset) if is_training_data else None
    if task.name == "multi-label":
        return _FrequentLabels(output)
    if task.name in ("classification", "sequence", "segmentation"):
        classes = max(2, int(output.shape[-1] or 0))
        return _FrequentClass(dataset, classes, targets, output) if classes <= MAX_LABELS else None
    if not is_regression(task, output, dataset):
        return None
    if dataset.kind == "series" and len(output.shape) in (2, 3):
        _, series = horizon_and_series(output.shape, dataset.target_names)
        names = dataset.target_names if len(dataset.target_names) == series else ()
        if past := baseline.past_columns(dataset.spec.inputs, dataset.feature_names, names):
            return _Numbers(dataset, series, past)
    mean = baseline.mean_target(dataset) if is_training_data or dataset.target_scaling else None
    columns = int(output.shape[-1] or 1) if len(output.shape) > 1 else 1
    return _Numbers(dataset, columns, mean=mean) if mean is not None and mean.size in (1, columns) else None


class _FrequentClass:
    """Always predicts the most frequent class of the training data, or of the evaluated examples if that is unknown."""

    def __init__(self, dataset: Dataset, classes: int, targets: npt.NDArray[Any] | None, output: Any) -> None:
        self._names, self._classes = dataset.class_names or dataset.vocabulary, classes
        self.width = classes + 1
        self._frequent = None
        if targets is not None and targets.dtype.kind in "biuf":
            with tf.device("CPU:0"):
                found = class_indices(tf.constant(targets), tf.TensorSpec(output.shape)).numpy().reshape(-1)
            self._frequent = baseline.frequent_class(found, classes)

    def measure(self, batch: Batch, outputs: Structure, mask: tf.Tensor) -> tf.Tensor:
        output = flatten(outputs)[0]
        labels = class_indices(flatten(batch.targets)[0], output)
        weights, tokens = broadcast(mask, labels), mask_of(output)
        if tokens is not None and tokens.shape.rank == labels.shape.rank:
            weights *= tf.cast(tokens, tf.float32)
        known = (labels >= 0) & (labels < self._classes)
        return counted_cells(tf.where(known, labels, self._classes), weights, self.width)

    def result(self, sums: npt.NDArray[np.float64]) -> BaselineResult | None:
        if not sums.any():
            return None
        frequent = int(sums[:-1].argmax()) if self._frequent is None else self._frequent
        of = "" if self._frequent is not None else " of the evaluated examples"
        name = baseline.name_of_class(frequent, self._names, of)
        return BaselineResult(name, {"accuracy": float(sums[frequent] / sums.sum())})


class _FrequentLabels:
    """Predicts a label if more than half of the evaluated examples have it."""

    def __init__(self, output: Any) -> None:
        self.width = int(output.shape[-1] or 1) + 1

    def measure(self, batch: Batch, outputs: Structure, mask: tf.Tensor) -> tf.Tensor:
        labels = tf.cast(tf.cast(flatten(batch.targets)[0], tf.float32) > 0.5, tf.float32)
        labels = tf.reshape(labels, [-1, self.width - 1]) * mask[:, tf.newaxis]
        return tf.concat([tf.reduce_sum(labels, axis=0), [tf.reduce_sum(mask)]], axis=0)

    def result(self, sums: npt.NDArray[np.float64]) -> BaselineResult | None:
        if not sums[-1]:
            return None
        shares = sums[:-1] / sums[-1]
        accuracy = float(np.maximum(shares, 1 - shares).mean())
        return BaselineResult("more frequent value of each label", {"accuracy": accuracy})


class _Numbers:
    """Predicts the last known value of each series, or the mean of the training targets."""

    def __init__(
        self, dataset: Dataset, columns: int, past: Sequence[int] = (), mean: npt.NDArray[np.float64] | None = None
    ) -> None:
        self._columns, self._past = columns, list(past)
        scaling = dataset.target_scaling
        self._scale = np.asarray(1.0 if scaling is None else scaling.scale, np.float32)
        mean = np.broadcast_to(np.zeros(1) if mean is None else mean, columns)
        # Numbers near their mean keep their digits in float32 sums, as differences from a number near it.
        self._centre = mean.astype(np.float32)
        self._predicted = (mean - self._centre).astype(np.float32)
        self.width = _NUMBERS * self._columns

    def measure(self, batch: Batch, outputs: Structure, mask: tf.Tensor) -> tf.Tensor:
        true = tf.cast(flatten(batch.targets)[0], tf.float32)
        true = tf.reshape(true, [tf.shape(mask)[0], -1, self._columns]) - self._centre
        predicted = tf.zeros_like(true) + self._predicted
        if self._past:
            last = tf.cast(tf.gather(flatten(batch.inputs)[0][:, -1], self._past, axis=-1), tf.float32)
            predicted += last[:, tf.newaxis]
        errors, counts = predicted - true, broadcast(mask, true)
        known = tf.math.is_finite(errors) & (counts > 0)
        sums = (tf.abs(errors * self._scale), tf.square(errors * self._scale), tf.square(errors), true, tf.square(true))
        kept = [tf.where(known, each, 0.0) for each in (*sums, counts)]
        return tf.concat([tf.reduce_sum(each, axis=[0, 1]) for each in kept], axis=0)

    def result(self, sums: npt.NDArray[np.float64]) -> BaselineResult | None:
        absolute, squared, plain, total, squares, count = sums.reshape(_NUMBERS, self._columns)
        if not count.all():
            return None
        spread = squares - total**2 / count
        scores = 1 - plain / np.where(spread > 0, spread, np.nan)
        metrics = {
            "mean_absolute_error": float(absolute.sum() / count.sum()),
            "root_mean_squared_error": float(np.sqrt(squared.sum() / count.sum())),
            "r2_score": float(scores.mean()),
        }
        return BaselineResult(baseline.LAST if self._past else baseline.MEAN, metrics)
