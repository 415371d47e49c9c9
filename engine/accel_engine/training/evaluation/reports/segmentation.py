"""Builds the report of a segmentation: a class for each pixel."""

from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.structure import Batch
from accel_engine.run.diagnostics import SegmentationReport
from accel_engine.run.diagnostics.reports import MAX_PIXEL_CLASSES
from accel_engine.run.diagnostics.views import View
from accel_engine.training.evaluation.reports.measures import (
    broadcast,
    compared,
    confusion,
    example_losses,
    no_totals,
)
from accel_engine.training.evaluation.reports.output_report import Floats, ModelOutput, OutputReportBuilder, Shown
from accel_engine.training.evaluation.reports.pixels import mask_view
from accel_engine.training.evaluation.task_report import Predict


class SegmentationBuilder(OutputReportBuilder):
    """Counts true and predicted classes of pixels."""

    def __init__(self, output: ModelOutput) -> None:
        super().__init__(output)
        self._classes = max(2, output.units)
        self._counts = self._classes <= MAX_PIXEL_CLASSES
        self.totals = self._classes**2 + 1 if self._counts else 0

    def measure(self, batch: Batch, target: Any, output: Any, mask: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """See :class:`OutputReportBuilder`."""
        del batch
        classes, predicted, own = compared(output, target, logits=self.output.logits)
        losses = example_losses(self.output.loss, target, output, own)
        if not self._counts:
            return losses[:, tf.newaxis], no_totals()
        return losses[:, tf.newaxis], confusion(classes, predicted, broadcast(mask, classes), self._classes)

    def build(
        self, values: npt.NDArray[np.float32], totals: Floats, shown: Shown, predict: Predict | None
    ) -> SegmentationReport:
        """See :class:`OutputReportBuilder`."""
        del predict
        names = self.output.class_names
        counts = np.rint(totals).astype(np.int64)
        views = []
        if shown.target is not None and len(shown.rows):
            with tf.device("CPU:0"):
                both = compared(tf.constant(shown.output), tf.constant(shown.target), logits=self.output.logits)[:2]
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
