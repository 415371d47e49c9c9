"""Builds the report of a model whose outputs are images or vectors: autoencoders and image to image."""

from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.structure import Batch, flatten
from accel_engine.run.diagnostics import ReconstructionReport
from accel_engine.run.diagnostics.views import View
from accel_engine.training.evaluation.reports.example_views import curve_view, spectrogram
from accel_engine.training.evaluation.reports.measures import error_sums, example_losses
from accel_engine.training.evaluation.reports.output_report import (
    Array,
    Floats,
    ModelOutput,
    OutputReportBuilder,
    Shown,
)
from accel_engine.training.evaluation.reports.pixels import image_views, is_picture, value_range
from accel_engine.training.evaluation.reports.regression import histogram_of
from accel_engine.training.evaluation.task_report import Predict


class ReconstructionBuilder(OutputReportBuilder):
    """Measures the errors of outputs of any shape.

    Args:
        output: The output.
        scale: The factor of raw inputs, where they are the targets.
        targets_are_inputs: Whether the targets are the scaled inputs.
    """

    totals = 3
    random = 8

    def __init__(self, output: ModelOutput, scale: float = 1.0, *, targets_are_inputs: bool = False) -> None:
        super().__init__(output)
        self._scale = scale
        self._targets_are_inputs = targets_are_inputs

    def measure(self, batch: Batch, target: Any, output: Any, mask: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """See :class:`OutputReportBuilder`."""
        if target is None:
            target = flatten(batch.inputs)[0]
        predicted = tf.cast(output, tf.float32)
        errors = predicted - tf.reshape(tf.cast(target, tf.float32), tf.shape(predicted))
        losses = example_losses(self.output.loss, target, output, tf.abs(errors))
        return losses[:, tf.newaxis], error_sums(errors, mask)

    def build(
        self, values: npt.NDArray[np.float32], totals: Floats, shown: Shown, predict: Predict | None
    ) -> ReconstructionReport:
        """See :class:`OutputReportBuilder`."""
        del predict
        losses = values[:, 0]
        finite = np.isfinite(losses)
        errors, edges = histogram_of(losses[finite])
        absolute, squared, count = totals
        same, targets, outputs = self._views(shown)
        return ReconstructionReport(
            output=self.output.name,
            examples=len(values),
            mae=float(absolute / count) if count else np.nan,
            rmse=float(np.sqrt(squared / count)) if count else np.nan,
            errors=errors,
            error_edges=edges,
            same_target=same,
            not_finite=int((~finite).sum()),
            **shown.examples(targets, outputs),
        )

    def _views(self, shown: Shown) -> tuple[bool, list[View | None] | None, list[View | None] | None]:
        """Whether targets are the inputs, and views of targets (if they are not) and outputs."""
        inputs = flatten(shown.batch.inputs)
        if not len(shown.rows):
            return self._targets_are_inputs, None, None
        if self._targets_are_inputs or shown.target is None:
            target = inputs[0].astype(np.float32) * self._scale
            return True, None, self._images_or_curves(shown.output, target)
        same = len(inputs) == 1 and np.array_equal(inputs[0], shown.target)
        targets = None if same else self._images_or_curves(shown.target, shown.target)
        return same, targets, self._images_or_curves(shown.output, shown.target)

    def _images_or_curves(self, values: Array, target: Array) -> list[View | None]:
        """Views of outputs or targets; images have the range of values of the targets."""
        kind = self.output.views.kind
        if is_picture(values, kind):
            return list(image_views(values, value_range(target)))
        if values.ndim > 3:
            return [None] * len(values)
        if kind == "audio":
            return [spectrogram(each, self.output.views.sample_rate) for each in values]
        return [curve_view(each, ()) for each in values]
