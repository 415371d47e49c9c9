"""Builds the reports of regressions: numbers, vectors or images for each example."""

from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.structure import Batch, flatten
from accel_engine.run.diagnostics import ReconstructionReport, RegressionReport
from accel_engine.run.diagnostics.reports import MAX_REGRESSION_POINTS, MAX_UNITS, RESIDUAL_BINS
from accel_engine.run.diagnostics.views import View
from accel_engine.training.evaluation.reports.example_views import curve_view, row_views, spectrogram
from accel_engine.training.evaluation.reports.measures import error_sums, example_losses, flat_values
from accel_engine.training.evaluation.reports.output_report import (
    SEED,
    Array,
    Floats,
    ModelOutput,
    OutputReportBuilder,
    Shown,
)
from accel_engine.training.evaluation.reports.pixels import image_views, is_picture, pixel_range
from accel_engine.training.evaluation.task_report import Predict


class RegressionBuilder(OutputReportBuilder):
    """Measures the true and predicted values of the first numbers, and the errors of all.

    Args:
        output: The output; all of its sides but the batch are known.
    """

    totals = 3
    worst = 64

    def __init__(self, output: ModelOutput) -> None:
        super().__init__(output)
        self._units = int(np.prod([side or 0 for side in output.shape[1:]], dtype=np.int64))
        self._shown = min(self._units, MAX_UNITS)
        self.width = 1 + 2 * self._shown

    def measure(self, batch: Batch, target: Any, output: Any, mask: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """See :class:`OutputReportBuilder`."""
        true, predicted = flat_values(target), flat_values(output)
        errors = self.output.errors(true, predicted)
        losses = example_losses(self.output.loss, target, output, tf.abs(errors))
        some = slice(self._shown)
        return tf.concat([losses[:, tf.newaxis], true[:, some], predicted[:, some]], 1), error_sums(errors, mask)

    def build(
        self, values: npt.NDArray[np.float32], totals: Floats, shown: Shown, predict: Predict | None
    ) -> RegressionReport:
        """See :class:`OutputReportBuilder`."""
        finite = np.isfinite(values[:, 1:]).all(axis=1)
        columns = np.split(values[finite, 1:].astype(np.float64), 2, axis=1)
        true, predicted = map(self.output.restored, columns)
        chosen = np.sort(np.random.default_rng(SEED).permutation(len(true))[:MAX_REGRESSION_POINTS])
        residuals = predicted - true
        histograms = [_residual_histogram(each) for each in residuals.T]
        absolute, squared, count = totals
        names = self.output.target_names
        if len(names) != self._units:
            names = tuple(map(str, range(self._units)))
        return RegressionReport(
            output=self.output.name,
            examples=len(values),
            names=names[: self._shown],
            units=self._units,
            mae=_mean(np.abs(residuals)),
            rmse=np.sqrt(_mean(residuals**2)),
            r2=_determination(true, residuals),
            mean_mae=float(absolute / count) if count else np.nan,
            mean_rmse=float(np.sqrt(squared / count)) if count else np.nan,
            points=np.stack([true[chosen].T, predicted[chosen].T], axis=2).astype(np.float32),
            residuals=np.array([counts for counts, _ in histograms]),
            residual_edges=np.array([edges for _, edges in histograms]),
            not_finite=int((~finite).sum()),
            **shown.examples(self._views(shown.target), self._views(shown.output)),
        )

    def _views(self, numbers: Array | None) -> Any:
        if numbers is None or not len(numbers):
            return None
        return row_views(list(self.output.restored(numbers.reshape(len(numbers), -1)).T), self.output.target_names)


def _residual_histogram(values: npt.NDArray[np.floating[Any]]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Counts ``[RESIDUAL_BINS]`` and edges ``[RESIDUAL_BINS + 1]`` of finite values.

    The outermost 0.5 percent are in the first and the last bin, as a single outlier would leave all others in one.
    """
    if not len(values):
        return np.zeros(RESIDUAL_BINS, np.int64), np.linspace(-1, 1, RESIDUAL_BINS + 1, dtype=np.float32)
    low, high = np.quantile(values, [0.005, 0.995])
    counts, edges = np.histogram(np.clip(values, low, high), RESIDUAL_BINS)
    return counts.astype(np.int64), edges.astype(np.float32)


def _mean(values: Floats) -> Floats:
    """Means of columns; NaN without rows."""
    return values.mean(axis=0) if len(values) else np.full(values.shape[1], np.nan)


def _determination(true: Floats, residuals: Floats) -> Floats:
    if not len(true):
        return np.full(true.shape[1], np.nan)
    spread = ((true - true.mean(axis=0)) ** 2).sum(axis=0)
    return 1 - (residuals**2).sum(axis=0) / np.where(spread == 0, np.nan, spread)


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
        losses = values[:, 0]
        finite = np.isfinite(losses)
        errors, edges = _residual_histogram(losses[finite])
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
            return list(image_views(values, pixel_range(target)))
        if values.ndim > 3:
            return [None] * len(values)
        if kind == "audio":
            return [spectrogram(each, self.output.views.sample_rate) for each in values]
        return [curve_view(each, ()) for each in values]
