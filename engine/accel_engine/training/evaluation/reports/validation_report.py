"""Builds the report of a model from the reports of its outputs."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.structure import Batch, Structure, map_structure
from accel_engine.run.diagnostics import DiagnosticsItem, ValidationReport
from accel_engine.training.evaluation.reports.output_report import (
    Floats,
    OutputReportBuilder,
    Shown,
    random_rows,
    worst_rows,
)
from accel_engine.training.evaluation.task_report import Predict, ReadExamples

Rows = npt.NDArray[np.int64]


class ValidationReportBuilder:
    """Measures all outputs of a model: a :class:`accel_engine.training.evaluation.task_report.TaskReport`.

    Args:
        builders: The builder of each output.
        stream: Whether examples cannot be read by row.
    """

    def __init__(self, builders: Sequence[OutputReportBuilder], *, stream: bool) -> None:
        self._builders = tuple(builders)
        self._stream = stream
        self._has_sum = len(self._builders) > 1
        self.width = self._has_sum + sum(builder.width for builder in self._builders)
        self.totals = sum(builder.totals for builder in self._builders)
        self.worst = max(builder.worst for builder in self._builders) * len(self._builders)
        self.first = max(builder.random for builder in self._builders) if stream else 0

    def measure(self, batch: Batch, outputs: Structure, mask: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Measure a batch; with several outputs, the first value of an example is the sum of their losses."""
        values, totals = [], []
        for builder in self._builders:
            output = builder.output
            measured = builder.measure(batch, output.target_of(batch.targets), output.of(outputs), mask)
            values.append(measured[0])
            totals.append(measured[1])
        if self._has_sum:
            values.insert(0, tf.add_n([value[:, :1] for value in values]))
        return tf.concat(values, axis=1), tf.concat(totals, axis=0)

    def build(
        self,
        values: npt.NDArray[np.float32],
        totals: npt.NDArray[np.float64],
        read: ReadExamples,
        predict: Predict | None = None,
    ) -> tuple[DiagnosticsItem, ...]:
        """Build the reports."""
        parts = list(self._parts(values, totals))
        chosen = [self._rows(values, part, builder) for builder, (part, _) in zip(self._builders, parts, strict=True)]
        rows = np.unique(np.concatenate([row for pair in chosen for row in pair]))
        batch, outputs = read(rows) if len(rows) else (Batch(None), None)
        reports = []
        for builder, (part, sums), (worst, random) in zip(self._builders, parts, chosen, strict=True):
            own = np.concatenate([worst, random])
            shown = _shown(builder, own, len(worst), part, np.searchsorted(rows, own), batch, outputs)
            reports.append(builder.build(part, sums, shown, predict))
        return (ValidationReport(tuple(reports)),)

    def _parts(
        self, values: npt.NDArray[np.float32], totals: Floats
    ) -> Iterator[tuple[npt.NDArray[np.float32], Floats]]:
        column, place = int(self._has_sum), 0
        for builder in self._builders:
            yield values[:, column : column + builder.width], totals[place : place + builder.totals]
            column, place = column + builder.width, place + builder.totals

    def _rows(
        self, values: npt.NDArray[np.float32], part: npt.NDArray[np.float32], builder: OutputReportBuilder
    ) -> tuple[Rows, Rows]:
        """The worst rows of an output, and random ones."""
        if not self._stream:
            return worst_rows(part[:, 0], builder.worst), random_rows(len(values), builder.random)
        readable = worst_rows(values[:, 0], self.worst)
        order = worst_rows(part[readable, 0], builder.worst)
        return readable[order], np.arange(min(len(values), builder.random))


def _shown(
    builder: OutputReportBuilder,
    rows: Rows,
    worst: int,
    values: npt.NDArray[np.float32],
    places: Rows,
    batch: Batch,
    outputs: Structure,
) -> Shown:
    """The examples of an output among those that were read, at ``places``."""
    if not len(rows):
        return Shown(rows, 0, np.zeros(0, np.float32), batch, (), None, np.zeros(0))
    own: Batch = map_structure(lambda array: array[places], batch)
    return Shown(
        rows,
        worst,
        values[rows, 0],
        own,
        builder.output.views(own.inputs),
        builder.output.target_of(own.targets),
        np.asarray(builder.output.of(outputs))[places],
    )
