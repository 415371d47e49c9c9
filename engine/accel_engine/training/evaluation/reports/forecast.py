"""Builds the report of a forecast: the next values of time series."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.baseline import past_columns
from accel_engine.data.structure import Batch, Structure, flatten
from accel_engine.run.diagnostics import ForecastReport
from accel_engine.run.diagnostics.reports import MAX_UNITS
from accel_engine.run.diagnostics.views import MAX_POINTS, View
from accel_engine.training.evaluation.reports.example_views import curve_view
from accel_engine.training.evaluation.reports.measures import broadcast, error_sums, example_losses
from accel_engine.training.evaluation.reports.output_report import (
    Array,
    Floats,
    ModelOutput,
    OutputReportBuilder,
    Shown,
)
from accel_engine.training.evaluation.task_report import Predict


class ForecastBuilder(OutputReportBuilder):
    """Measures errors by series and step ahead, and the errors of repeating the last known value.

    Args:
        output: The output: ``[batch, steps]`` of one series, ``[batch, series]`` of several, or
            ``[batch, steps, series]``. All sides but the batch are known.
        inputs: The spec of the inputs, whose columns of the forecast series are standardised as the targets are.
    """

    random = 8

    def __init__(self, output: ModelOutput, inputs: Structure) -> None:
        super().__init__(output)
        names, features = output.target_names, output.views.feature_names
        self._horizon, self._series = horizon_and_series(output.shape, names)
        self._names = names if len(names) == self._series else tuple(map(str, range(self._series)))
        self._steps, self._shown = min(self._horizon, MAX_POINTS), min(self._series, MAX_UNITS)
        # The columns of the inputs with the past of each series that is forecast.
        self._past = past_columns(inputs, features, self._names)
        self._has_past = bool(self._past)
        self.totals = 3 * self._shown * self._steps + 3

    def measure(self, batch: Batch, target: Any, output: Any, mask: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """See :class:`OutputReportBuilder`."""
        true, predicted = self._by_step(target), self._by_step(output)
        errors = self.output.errors(true, predicted)
        losses = example_losses(self.output.loss, target, output, tf.abs(errors))
        baseline = tf.zeros_like(errors)
        if self._has_past:
            last = tf.cast(tf.gather(flatten(batch.inputs)[0][:, -1], self._past, axis=-1), tf.float32)
            baseline = self.output.errors(true, last[:, tf.newaxis])
        weights = broadcast(mask, errors)
        finite = tf.math.is_finite(errors) & (weights > 0)
        sums = [
            tf.reduce_sum(tf.where(finite, each, 0.0)[:, : self._steps, : self._shown], axis=0)
            for each in (tf.abs(errors), tf.abs(baseline), tf.ones_like(errors))
        ]
        return losses[:, tf.newaxis], tf.concat(
            [*(tf.reshape(each, [-1]) for each in sums), error_sums(errors, mask)], 0
        )

    def build(
        self, values: npt.NDArray[np.float32], totals: Floats, shown: Shown, predict: Predict | None
    ) -> ForecastReport:
        """See :class:`OutputReportBuilder`."""
        absolute, squared, count = totals[-3:]
        errors, baseline, counts = totals[:-3].reshape(3, self._steps, self._shown).transpose(0, 2, 1)
        counts = np.where(counts == 0, np.nan, counts)
        targets = outputs = None
        if len(shown.rows) and shown.target is not None:
            targets, outputs = (self._curves(self._by_step(each).numpy()) for each in (shown.target, shown.output))
        return ForecastReport(
            output=self.output.name,
            examples=len(values),
            names=self._names[: self._shown],
            mae=errors / counts,
            baseline=baseline / counts if self._has_past else None,
            mean_mae=float(absolute / count) if count else np.nan,
            mean_rmse=float(np.sqrt(squared / count)) if count else np.nan,
            not_finite=int((~np.isfinite(values[:, 0])).sum()),
            **self._with_past(shown).examples(targets, outputs),
        )

    def _by_step(self, values: Any) -> tf.Tensor:
        """Targets or outputs, float32 ``[batch, steps, series]``."""
        return tf.reshape(tf.cast(values, tf.float32), [-1, self._horizon, self._series])

    def _curves(self, values: Array) -> list[View | None]:
        names = self._names if self._names == self.output.target_names else ()
        return [curve_view(self.output.restored(each), names) for each in values]

    def _with_past(self, shown: Shown) -> Shown:
        """The same with inputs whose first series are the forecast ones; without others if units are restored."""
        if not len(shown.rows) or not self._has_past:
            return shown
        features, order = self.output.views.feature_names, list(self._past)
        if self.output.units_of_targets is None:
            order += [index for index in range(len(features)) if index not in self._past]
        windows = flatten(shown.batch.inputs)[0][:, :, order]
        names = [features[index] for index in order]
        return replace(shown, inputs=[curve_view(self.output.restored(each), names) for each in windows])


def horizon_and_series(shape: Sequence[int | None], names: Sequence[str]) -> tuple[int, int]:
    """The steps ahead and the number of series of a forecast.

    Args:
        shape: The shape of the output: ``[batch, steps]`` of one series, ``[batch, series]`` of several, or
            ``[batch, steps, series]``.
        names: The names of the series, as far as they are known.
    """
    sides = [int(side or 1) for side in shape[1:]]
    if len(sides) == 1:
        return (1, sides[0]) if len(names) == sides[0] > 1 else (sides[0], 1)
    return sides[0], sides[1]
