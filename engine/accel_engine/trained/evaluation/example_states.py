"""Computes the loss, the states of the metrics and the classes of each example, for the metrics of any resample."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.structure import Batch, Structure, map_structure, only_array
from accel_engine.private_names.keras_graph_names import rows_of
from accel_engine.requests.evaluate import ClassScores, Measurement
from accel_engine.run.diagnostics.figures import figures_of_sums
from accel_engine.run.store.series_names import SeriesNames
from accel_engine.trained.evaluation.resampling import ConfidenceInterval, share_interval
from accel_engine.trained.open_trained import TrainedModel
from accel_engine.training.core.metric_states import MetricStates, mean_loss, pack_states
from accel_engine.training.core.task import Task, probabilities_of
from accel_engine.training.evaluation.reports.measures import class_indices

_OWN = 2
"""Values of an example before the states of its metrics: its loss, and 1."""


class ExampleStates:
    """The loss and the states of the metrics of single examples.

    Args:
        model: Built and compiled; its metrics are built too.
        metrics: Metrics besides the model's own, of a single output.
        names: Names of the series.
        limit: Values of a metric's state at most, as they are kept for each example; metrics with more are left out.
    """

    def __init__(
        self, model: keras.Model, metrics: Sequence[keras.Metric], names: SeriesNames, limit: int | None
    ) -> None:
        self._model = model
        self._states = MetricStates(model, metrics, names, limit)
        self.left_out = self._states.left_out
        """Names of the metrics that are left out."""
        self.names = ("loss", *self._states.series)
        """Names of the metrics."""
        self._values = tf.function(self._values_of, autograph=False, reduce_retracing=True)

    @property
    def width(self) -> int:
        """Values of an example."""
        return _OWN + self._states.width

    def measure(self, batch: Batch, outputs: Structure) -> tf.Tensor:
        """The values of each example of a batch, float32 ``[batch, width]``; in a graph.

        Args:
            batch: As the model and the loss take it.
            outputs: The model's outputs for it.
        """

        def measure_one(index: tf.Tensor) -> tf.Tensor:
            def row(array: Any) -> Any:
                return array[index : index + 1]

            one = map_structure(row, batch)
            return self._measured(one, keras.tree.map_structure(lambda each: rows_of(each, row), outputs), 1.0)

        count = _examples_of(outputs)
        signature = tf.TensorSpec([self.width], tf.float32)
        return tf.map_fn(measure_one, tf.range(count), fn_output_signature=signature)

    def measure_batch(self, batch: Batch, outputs: Structure) -> tf.Tensor:
        """The sum of the values of a batch as Keras has them, float32 ``[width]``; in a graph.

        It differs from :meth:`measure` where a loss or a metric is not a mean over examples.
        """
        return self._measured(batch, outputs, tf.cast(_examples_of(outputs), tf.float32))

    def _measured(self, batch: Batch, outputs: Structure, count: Any) -> tf.Tensor:
        loss, states = self._states.measure(batch, outputs, training=False)
        return tf.concat([[mean_loss(loss) * count, count], pack_states(states)], axis=0)

    def values(self, sums: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The metrics of summed values.

        Args:
            sums: ``[resamples, width]``.

        Returns:
            ``[resamples, metrics]``, in the order of :attr:`names`.
        """
        found: npt.NDArray[np.float64] = self._values(tf.constant(sums, tf.float32)).numpy().astype(np.float64)
        # In float64, as a loss is compared with the losses of steps.
        found[:, 0] = sums[:, 0] / sums[:, 1]
        return found

    def _values_of(self, sums: tf.Tensor) -> tf.Tensor:
        def values(row: tf.Tensor) -> tf.Tensor:
            results = self._states.results(self._states.unpack(row[_OWN:]))
            return tf.stack([row[0] / row[1], *(tf.cast(value, tf.float32) for value in results.values())])

        return tf.map_fn(values, sums, fn_output_signature=tf.TensorSpec([len(self.names)], tf.float32))


def _examples_of(outputs: Structure) -> tf.Tensor:
    return tf.shape(keras.tree.flatten(outputs)[0])[0]


@dataclass(frozen=True, slots=True)
class ClassLabels:
    """The true and the predicted class of each example."""

    task: Task
    """The task of the model."""
    names: tuple[str, ...]
    pairs: npt.NDArray[np.int32]
    """True and predicted classes, int32 ``[examples, 2]``; a true class below 0 is unknown."""

    @classmethod
    def of(cls, source: TrainedModel) -> Self | None:
        """For a classifier, without examples; ``None`` for other models."""
        task = source.task
        if task.name != "classification":
            return None
        return cls(task, source.dataset.class_names, np.empty((0, 2), np.int32))

    def measure(self, batch: Batch, outputs: Structure) -> tf.Tensor:
        """The true and predicted classes of a batch, int32 ``[batch, 2]``; in a graph."""
        output = only_array(outputs)
        predicted = tf.argmax(probabilities_of(output, self.task), axis=-1, output_type=tf.int32)
        return tf.stack([class_indices(only_array(batch.targets), output), predicted], axis=1)

    def with_pairs(self, pairs: npt.NDArray[np.int32]) -> Self:
        """With the classes of examples, and names for classes without one."""
        known = pairs[pairs[:, 0] >= 0]
        unnamed = range(len(self.names), int(known.max(initial=0)) + 1)
        return replace(self, names=(*self.names, *map(str, unnamed)), pairs=known)


def class_scores(labels: ClassLabels, confidence: float) -> tuple[ClassScores, ...]:
    """The figures of each class, with Wilson's intervals.

    Precision and recall are shares of examples: of the examples predicted as the class, and of the class's examples. F1
    follows from a share, too: J of the examples that are either is both, and F1 = 2 J / (1 + J).

    Args:
        labels: True and predicted classes.
        confidence: The level of the intervals, 0 to 1.

    Returns:
        The figures of each class; unknown where nothing can be divided.
    """
    true, predicted = labels.pairs.T
    classes = len(labels.names)
    right, support, found = (
        np.bincount(each, minlength=classes) for each in (true[true == predicted], true, predicted)
    )
    measured = figures_of_sums(right, support, found)
    return tuple(
        ClassScores(
            name,
            int(support[index]),
            Measurement.of(measured.precision[index], *share_interval(right[index], found[index], confidence)),
            Measurement.of(measured.recall[index], *share_interval(right[index], support[index], confidence)),
            Measurement.of(measured.f1[index], *_f1_interval(right[index], support[index], found[index], confidence)),
        )
        for index, name in enumerate(labels.names)
    )


def _f1_interval(right: int, support: int, found: int, confidence: float) -> ConfidenceInterval:
    low, high = share_interval(right, support + found - right, confidence)
    return ConfidenceInterval(2 * low / (1 + low), 2 * high / (1 + high))
