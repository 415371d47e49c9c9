"""Builds the report of a classifier: a class for each example."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.structure import Batch
from accel_engine.run.diagnostics import ClassificationReport, SamplePrediction, Scores
from accel_engine.run.diagnostics.reports import MAX_CLASSES, MAX_WORST, SCORE_BINS
from accel_engine.training.evaluation.reports.measures import (
    class_indices,
    example_losses,
    negative_log,
    no_totals,
    probabilities,
    take_class,
)
from accel_engine.training.evaluation.reports.output_report import Floats, OutputReportBuilder, Shown
from accel_engine.training.evaluation.task_report import Predict

_LABEL, _PREDICTED, _CONFIDENCE, _TRUE = range(1, 5)


class ClassificationBuilder(OutputReportBuilder):
    """Measures the loss, the true and the predicted class, and the probabilities of both."""

    width = 5
    worst = MAX_WORST

    def measure(self, batch: Batch, target: Any, output: Any, mask: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """See :class:`OutputReportBuilder`."""
        del batch, mask
        chances = probabilities(output, logits=self.output.logits, binary=self.output.units == 1)
        labels = class_indices(target, output)
        predicted = tf.argmax(chances, axis=-1, output_type=tf.int32)
        true = take_class(chances, labels)
        losses = example_losses(self.output.loss, target, output, negative_log(true))
        values = [losses, tf.cast(labels, tf.float32), tf.cast(predicted, tf.float32), take_class(chances, predicted)]
        return tf.stack([*values, true], axis=1), no_totals()

    def build(
        self, values: npt.NDArray[np.float32], totals: Floats, shown: Shown, predict: Predict | None
    ) -> ClassificationReport:
        """See :class:`OutputReportBuilder`."""
        del totals, predict
        names, reason, counts = self.output.class_names, "", None
        labels, predicted = values[:, _LABEL].astype(np.int64), values[:, _PREDICTED].astype(np.int64)
        known = labels >= 0
        found = (int(each.max(initial=0)) + 1 for each in (labels, predicted))
        classes = max(len(names) or self.output.units, 2, *found)
        names += tuple(map(str, range(len(names), classes)))
        if classes > MAX_CLASSES:
            reason = f"no confusion matrix: {classes:,} classes, of at most {MAX_CLASSES:,}"
        else:
            cells = labels[known] * classes + predicted[known]
            counts = np.bincount(cells, minlength=classes * classes).reshape(classes, classes).astype(np.int64)
        right, true = labels == predicted, values[:, _TRUE]
        second = labels == 1
        is_binary = classes == 2 and self.output.units <= 2
        return ClassificationReport(
            output=self.output.name,
            examples=len(values),
            names=names,
            counts=counts,
            scores=score_histograms(np.where(second, true, 1 - true), second) if is_binary else None,
            confidence=score_histograms(values[:, _CONFIDENCE], right),
            worst=tuple(
                SamplePrediction(
                    row=int(row),
                    loss=float(values[row, 0]),
                    input=view,
                    label=int(labels[row]) if known[row] else None,
                    predicted=int(predicted[row]),
                    confidence=_finite(values[row, _CONFIDENCE]),
                    true_class_probability=_finite(true[row]),
                )
                for row, view in zip(shown.rows, shown.inputs, strict=True)
            ),
            reason=reason,
        )


def score_histograms(values: npt.NDArray[np.float32], positive: npt.NDArray[np.bool_]) -> Scores:
    """Histograms of probabilities with one label; those that are not finite are left out.

    Args:
        values: Probabilities, ``[examples]``.
        positive: Whether each example has the label.
    """
    finite = np.isfinite(values)
    bins = np.clip((np.where(finite, values, 0) * SCORE_BINS).astype(np.int64), 0, SCORE_BINS - 1)
    counts = [np.bincount(bins[finite & chosen], minlength=SCORE_BINS) for chosen in (positive, ~positive)]
    return Scores(*(each[np.newaxis].astype(np.int64) for each in counts))


def _finite(value: np.float32) -> float:
    """A probability; 0 for NaN."""
    return float(value) if math.isfinite(value) else 0.0
