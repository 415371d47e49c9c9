"""Builds the reports of classifiers: a class or any number of labels for each example, or a class for each pixel."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.structure import Batch
from accel_engine.run.diagnostics import (
    ClassificationReport,
    MultiLabelReport,
    SamplePrediction,
    Scores,
    SegmentationReport,
)
from accel_engine.run.diagnostics.reports import (
    MAX_CLASSES,
    MAX_PIXEL_CLASSES,
    MAX_SCORED_LABELS,
    MAX_WORST,
    SCORE_BINS,
)
from accel_engine.run.diagnostics.views import MAX_COLUMNS, Labels, View
from accel_engine.training.evaluation.reports import measures
from accel_engine.training.evaluation.reports.output_report import Floats, ModelOutput, OutputReportBuilder, Shown
from accel_engine.training.evaluation.reports.pixels import mask_view
from accel_engine.training.evaluation.task_report import Predict

_LABEL, _PREDICTED, _CONFIDENCE, _TRUE = range(1, 5)


class ClassificationBuilder(OutputReportBuilder):
    """Measures the loss, the true and the predicted class, and the probabilities of both."""

    width = 5
    worst = MAX_WORST

    def measure(self, batch: Batch, target: Any, output: Any, mask: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """See :class:`OutputReportBuilder`."""
        chances = measures.probabilities(output, logits=self.output.logits, binary=self.output.units == 1)
        labels = measures.class_indices(target, output)
        predicted = tf.argmax(chances, axis=-1, output_type=tf.int32)
        true = measures.take_class(chances, labels)
        losses = measures.example_losses(self.output.loss, target, output, measures.negative_log(true))
        values = [
            losses,
            tf.cast(labels, tf.float32),
            tf.cast(predicted, tf.float32),
            measures.take_class(chances, predicted),
        ]
        return tf.stack([*values, true], axis=1), measures.no_totals()

    def build(
        self, values: npt.NDArray[np.float32], totals: Floats, shown: Shown, predict: Predict | None
    ) -> ClassificationReport:
        """See :class:`OutputReportBuilder`."""
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
            scores=_score_histograms(np.where(second, true, 1 - true), second) if is_binary else None,
            confidence=_score_histograms(values[:, _CONFIDENCE], right),
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


def _score_histograms(values: npt.NDArray[np.float32], positive: npt.NDArray[np.bool_]) -> Scores:
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


_THRESHOLD = 0.5


class MultiLabelBuilder(OutputReportBuilder):
    """Counts the predictions of each label, right and wrong, and how high its probabilities are."""

    def __init__(self, output: ModelOutput) -> None:
        super().__init__(output)
        self._counted = min(output.units, MAX_CLASSES)
        self._scored = min(output.units, MAX_SCORED_LABELS)
        self.totals = 4 * self._counted + 2 * self._scored * SCORE_BINS

    def measure(self, batch: Batch, target: Any, output: Any, mask: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """See :class:`OutputReportBuilder`."""
        chances = measures.scores(output, logits=self.output.logits)
        positive = tf.cast(target, tf.float32) > _THRESHOLD
        safe = tf.clip_by_value(chances, measures.EPSILON, 1 - measures.EPSILON)
        own = -tf.where(positive, tf.math.log(safe), tf.math.log(1 - safe))
        losses = measures.example_losses(self.output.loss, target, output, own)
        some = slice(self._counted)
        cells = tf.range(self._counted) * 4 + 2 * tf.cast(positive[:, some], tf.int32)
        cells += tf.cast(chances[:, some] > _THRESHOLD, tf.int32)
        weights = tf.broadcast_to(mask[:, tf.newaxis], tf.shape(cells))
        counts = measures.counted_cells(cells, weights, 4 * self._counted)
        some = slice(self._scored)
        return losses[:, tf.newaxis], tf.concat(
            [counts, measures.score_histograms(chances[:, some], positive[:, some], mask)], axis=0
        )

    def build(
        self, values: npt.NDArray[np.float32], totals: Floats, shown: Shown, predict: Predict | None
    ) -> MultiLabelReport:
        """See :class:`OutputReportBuilder`."""
        counts, histograms = np.split(np.rint(totals).astype(np.int64), [4 * self._counted])
        positives, negatives = histograms.reshape(2, self._scored, SCORE_BINS)
        names, units = self.output.class_names, self.output.units
        targets = [
            Labels(tuple(np.flatnonzero(each > _THRESHOLD)[:MAX_COLUMNS].tolist())) for each in _rows(shown.target)
        ]
        chances = (
            measures.scores(tf.constant(shown.output, tf.float32), logits=self.output.logits).numpy() if targets else ()
        )
        return MultiLabelReport(
            output=self.output.name,
            examples=len(values),
            names=names if len(names) == units else tuple(map(str, range(units))),
            counts=counts.reshape(self._counted, 2, 2),
            scores=Scores(positives, negatives),
            reason=f"confusion of the first {MAX_CLASSES:,} of {units:,} labels" if units > MAX_CLASSES else "",
            **shown.examples(targets, [_predicted(each) for each in chances]),
        )


def _rows(target: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
    return np.zeros((0, 0)) if target is None else target


def _predicted(chances: npt.NDArray[np.float32]) -> Labels:
    order = np.argsort(-chances, kind="stable")[:MAX_COLUMNS]
    labels = order[chances[order] > _THRESHOLD]
    return Labels(tuple(labels.tolist()), tuple(round(float(chance), 6) for chance in chances[labels]))


class SegmentationBuilder(OutputReportBuilder):
    """Counts true and predicted classes of pixels."""

    def __init__(self, output: ModelOutput) -> None:
        super().__init__(output)
        self._classes = max(2, output.units)
        self._counts = self._classes <= MAX_PIXEL_CLASSES
        self.totals = self._classes**2 + 1 if self._counts else 0

    def measure(self, batch: Batch, target: Any, output: Any, mask: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """See :class:`OutputReportBuilder`."""
        classes, predicted, own = measures.compared_classes(output, target, logits=self.output.logits)
        losses = measures.example_losses(self.output.loss, target, output, own)
        if not self._counts:
            return losses[:, tf.newaxis], measures.no_totals()
        return losses[:, tf.newaxis], measures.confusion(
            classes, predicted, measures.broadcast(mask, classes), self._classes
        )

    def build(
        self, values: npt.NDArray[np.float32], totals: Floats, shown: Shown, predict: Predict | None
    ) -> SegmentationReport:
        """See :class:`OutputReportBuilder`."""
        names = self.output.class_names
        counts = np.rint(totals).astype(np.int64)
        views = []
        if shown.target is not None and len(shown.rows):
            with tf.device("CPU:0"):
                both = measures.compared_classes(
                    tf.constant(shown.output), tf.constant(shown.target), logits=self.output.logits
                )[:2]
            views = [_views(each.numpy()) for each in both]
        return SegmentationReport(
            output=self.output.name,
            examples=len(values),
            names=names + tuple(map(str, range(len(names), self._classes))),
            counts=counts[:-1].reshape(self._classes, self._classes) if self._counts else None,
            ignored=int(counts[-1]) if self._counts else 0,
            reason="" if self._counts else f"no confusion matrix: more than {MAX_PIXEL_CLASSES} classes",
            **shown.examples(*views),
        )


def _views(masks: npt.NDArray[np.int32]) -> list[View | None]:
    return [mask_view(mask) if mask.ndim == 2 else None for mask in masks]
