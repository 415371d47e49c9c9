"""Precision, recall and F1 of each class of a classifier, with confidence intervals."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.structure import Batch, Structure, only_array
from accel_engine.requests.evaluate import ClassScores, Measurement
from accel_engine.run.diagnostics.figures import figures_of_sums
from accel_engine.trained.evaluation.resampling import ConfidenceInterval, share_interval
from accel_engine.trained.open_trained import TrainedModel
from accel_engine.training.core.task import Task, probabilities_of
from accel_engine.training.evaluation.reports.measures import class_indices


@dataclass(frozen=True, slots=True)
class ClassLabels:
    """The true and the predicted class of each example.

    Attributes:
        task: What the model learned.
        names: The classes.
        pairs: True and predicted classes, int32 ``[examples, 2]``; a true class below 0 is unknown.
    """

    task: Task
    names: tuple[str, ...]
    pairs: npt.NDArray[np.int32]

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

    Precision and recall are shares of examples: of those predicted as the class, and of those of the class. F1 follows
    from a share, too: J of the examples that are either is both, and F1 = 2 J / (1 + J).

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
