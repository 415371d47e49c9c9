"""Precision, recall and F1 of each class of a classifier, with confidence intervals."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.structure import Batch, Structure, only_array
from accel_engine.run.diagnostics.figures import ClassFigures, figures_of_sums
from accel_engine.training.core.task import Task, probabilities_of
from accel_engine.training.evaluation.reports.measures import class_indices
from accel_engine.training.evaluation.resampling import Floats, percentile_interval, share_interval
from accel_engine.training.trained_model import TrainedModel

FIGURES = ("precision", "recall", "f1")
"""What is computed of each class."""


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
        task = source.compiled.task
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


def class_scores(labels: ClassLabels, resamples: int, confidence: float, seed: int) -> list[dict[str, Any]]:
    """The figures of each class.

    Examples that are drawn with replacement have a multinomial number in each cell of the confusion matrix, so the
    cells are drawn instead.

    Args:
        labels: True and predicted classes.
        resamples: How often examples are drawn.
        confidence: The level of the intervals, 0 to 1.
        seed: Of the random generator.

    Returns:
        For each class its ``name``, ``examples``, and of each of :data:`FIGURES` the value and the ends of its
        interval; NaN where nothing can be divided.
    """
    classes, examples = len(labels.names), len(labels.pairs)
    cells, counts = np.unique(labels.pairs, axis=0, return_counts=True)
    drawn = (
        np.random.default_rng(seed).multinomial(examples, counts / examples, size=resamples)
        if examples
        else counts[None]
    )
    measured = _figures(cells, counts, classes)
    resampled = [_figures(cells, row, classes) for row in drawn]
    samples = {figure: np.array([getattr(each, figure) for each in resampled]) for figure in FIGURES}
    predicted = np.bincount(labels.pairs[:, 1], minlength=classes)
    scores = []
    for index, name in enumerate(labels.names):
        support = int(measured.support[index])
        wholes = {"precision": int(predicted[index]), "recall": support, "f1": support}
        figures = {
            figure: _with_interval(getattr(measured, figure)[index], samples[figure][:, index], whole, confidence)
            for figure, whole in wholes.items()
        }
        scores.append({"name": name, "examples": support, **figures})
    return scores


def _with_interval(value: float, samples: Floats, whole: int, confidence: float) -> list[float]:
    """A figure of a class and the ends of its interval.

    Args:
        value: The figure.
        samples: That of resamples.
        whole: How many examples it is a share of.
        confidence: The level of the interval, 0 to 1.
    """
    interval = percentile_interval(samples, confidence)
    if interval.low == interval.high and whole:  # all of them, or none
        interval = share_interval(round(value * whole), whole, confidence)
    return [float(value), *interval]


def _figures(cells: npt.NDArray[np.int32], counts: npt.NDArray[np.int64], classes: int) -> ClassFigures:
    """The figures of classes from the counts of some cells of the confusion matrix.

    Args:
        cells: True and predicted class of each cell, ``[cells, 2]``.
        counts: Examples in each, ``[cells]``.
        classes: Number of classes.
    """
    true, predicted = cells[:, 0], cells[:, 1]
    right = true == predicted
    return figures_of_sums(
        np.bincount(true[right], counts[right], classes),
        np.bincount(true, counts, classes),
        np.bincount(predicted, counts, classes),
    )
