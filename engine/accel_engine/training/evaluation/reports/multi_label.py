"""Builds the report of a model that gives each example any number of labels."""

from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.structure import Batch
from accel_engine.run.diagnostics import MultiLabelReport, Scores
from accel_engine.run.diagnostics.reports import MAX_CLASSES, MAX_SCORED_LABELS, SCORE_BINS
from accel_engine.run.diagnostics.views import MAX_COLUMNS, Labels
from accel_engine.training.evaluation.reports.measures import (
    EPSILON,
    counted,
    example_losses,
    histogram,
    scores,
)
from accel_engine.training.evaluation.reports.output_report import Floats, ModelOutput, OutputReportBuilder, Shown
from accel_engine.training.evaluation.task_report import Predict

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
        del batch
        chances = scores(output, logits=self.output.logits)
        positive = tf.cast(target, tf.float32) > _THRESHOLD
        safe = tf.clip_by_value(chances, EPSILON, 1 - EPSILON)
        own = -tf.where(positive, tf.math.log(safe), tf.math.log(1 - safe))
        losses = example_losses(self.output.loss, target, output, own)
        some = slice(self._counted)
        cells = tf.range(self._counted) * 4 + 2 * tf.cast(positive[:, some], tf.int32)
        cells += tf.cast(chances[:, some] > _THRESHOLD, tf.int32)
        weights = tf.broadcast_to(mask[:, tf.newaxis], tf.shape(cells))
        counts = counted(cells, weights, 4 * self._counted)
        some = slice(self._scored)
        return losses[:, tf.newaxis], tf.concat([counts, histogram(chances[:, some], positive[:, some], mask)], axis=0)

    def build(
        self, values: npt.NDArray[np.float32], totals: Floats, shown: Shown, predict: Predict | None
    ) -> MultiLabelReport:
        """See :class:`OutputReportBuilder`."""
        del predict
        counts, histograms = np.split(np.rint(totals).astype(np.int64), [4 * self._counted])
        positives, negatives = histograms.reshape(2, self._scored, SCORE_BINS)
        names, units = self.output.class_names, self.output.units
        targets = [
            Labels(tuple(np.flatnonzero(each > _THRESHOLD)[:MAX_COLUMNS].tolist())) for each in _rows(shown.target)
        ]
        chances = scores(tf.constant(shown.output, tf.float32), logits=self.output.logits).numpy() if targets else ()
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
