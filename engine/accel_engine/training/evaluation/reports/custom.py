"""Builds the report of a model whose outputs cannot be interpreted."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.structure import Batch
from accel_engine.run.diagnostics import CustomReport
from accel_engine.training.evaluation.reports.measures import loss_values, mean_of_examples, no_totals
from accel_engine.training.evaluation.reports.output_report import Floats, ModelOutput, OutputReportBuilder, Shown
from accel_engine.training.evaluation.task_report import Predict


class CustomBuilder(OutputReportBuilder):
    """Measures the loss of each example, if the model's loss gives one.

    Args:
        output: The output.
        shapes: Name and spec of each output of the model.
        reason: Why the output cannot be interpreted.
    """

    def __init__(self, output: ModelOutput, shapes: Sequence[tuple[str, str]], reason: str) -> None:
        super().__init__(output)
        self._shapes, self._reason = tuple(shapes), reason
        self.worst = 0 if output.loss is None else 24

    def measure(self, batch: Batch, target: Any, output: Any, mask: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """See :class:`OutputReportBuilder`. Values are NaN if the loss gives none for each example."""
        del batch
        losses = loss_values(self.output.loss, target, output)
        if losses is None:
            return tf.fill([tf.shape(mask)[0], 1], np.float32(np.nan)), no_totals()
        return mean_of_examples(tf.cast(losses, tf.float32))[:, tf.newaxis], no_totals()

    def build(
        self, values: npt.NDArray[np.float32], totals: Floats, shown: Shown, predict: Predict | None
    ) -> CustomReport:
        """See :class:`OutputReportBuilder`."""
        del totals, predict
        known = not np.isnan(values[:, 0]).all()
        return CustomReport(
            output=self.output.name,
            examples=len(values),
            worst=shown.examples()["worst"] if known else (),
            reason=self._reason,
            shapes=self._shapes,
        )
