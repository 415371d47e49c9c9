"""Builds the report of one output of a model; the subclasses in this package do so for each task."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.standardization import Standardization
from accel_engine.data.structure import Batch, Structure, flatten
from accel_engine.keras_support.losses import Loss
from accel_engine.run.diagnostics import CustomReport, Example, OutputReport
from accel_engine.run.diagnostics.views import View
from accel_engine.training.evaluation.reports.example_views import InputViews
from accel_engine.training.evaluation.reports.measures import loss_values, mean_of_examples, no_totals
from accel_engine.training.evaluation.task_report import Predict

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

SEED = 0
"""Seed of the choice of random examples and of generated text, the same at every validation."""


@dataclass(frozen=True, slots=True)
class ModelOutput:
    """One output of a model, and what is known of it."""

    shape: tuple[int | None, ...]
    """Its shape, with the batch."""
    views: InputViews
    """Makes views of the examples' inputs."""
    loss: Loss = None
    """Its loss; ``None`` if the model has none for it."""
    logits: bool = False
    """Whether a classifier's outputs are logits, or other scores of any size."""
    index: int = 0
    """Its place among the arrays of all outputs."""
    target: int | None = 0
    """The place of its target among the arrays of all targets; ``None`` if it has none."""
    name: str = ""
    """Its name; empty if it is the only one."""
    class_names: tuple[str, ...] = ()
    """Names of the classes, where it predicts classes."""
    target_names: tuple[str, ...] = ()
    """Names of its numbers."""
    units_of_targets: Standardization | None = None
    """How its targets were standardised; ``None`` if they were not."""

    def of(self, outputs: Structure) -> Any:
        """This output among all."""
        return flatten(outputs)[self.index]

    def target_of(self, targets: Structure) -> Any:
        """Its target among all; ``None`` if it has none."""
        return None if self.target is None or targets is None else flatten(targets)[self.target]

    def restored(self, values: Array) -> Array:
        """Targets or outputs in their original units; float64, which keeps their digits, if they were standardised.

        Args:
            values: ``[..., columns]``; the first columns, or all.
        """
        units, columns = self.units_of_targets, values.shape[-1]
        return values if units is None else values * units.scale[:columns] + units.mean[:columns]

    def errors(self, targets: Any, outputs: Any) -> Any:
        """Outputs minus targets in original units, without their mean, whose size would take digits of float32.

        Args:
            targets: Tensor ``[..., columns]``.
            outputs: The same.
        """
        units = self.units_of_targets
        return outputs - targets if units is None else (outputs - targets) * units.scale.astype(np.float32)

    @property
    def units(self) -> int:
        """Size of its last axis; 0 if unknown."""
        return int(self.shape[-1] or 0) if len(self.shape) > 1 else 1


@dataclass(frozen=True, slots=True)
class Shown:
    """The examples that a report shows."""

    rows: npt.NDArray[np.int64]
    """Their indices, first the worst ones, ``[shown]``."""
    worst: int
    """Number of the worst ones."""
    losses: npt.NDArray[np.float32]
    """Their losses, ``[shown]``."""
    batch: Batch
    """The examples before scaling."""
    inputs: Sequence[View | None]
    """A view of each."""
    target: Array | None
    """Their targets, ``[shown, ...]``; ``None`` without targets."""
    output: Array
    """The model's outputs for them, ``[shown, ...]``."""

    def examples(
        self, targets: Sequence[View | None] | None = None, outputs: Sequence[View | None] | None = None
    ) -> "ShownExamples":
        """The fields ``worst`` and ``random`` of a report.

        Args:
            targets: A view of each target; none by default.
            outputs: A view of each output; none by default.
        """
        shown = tuple(
            Example(
                row=int(row),
                loss=float(self.losses[index]),
                input=self.inputs[index],
                target=targets[index] if targets else None,
                output=outputs[index] if outputs else None,
            )
            for index, row in enumerate(self.rows)
        )
        return ShownExamples(worst=shown[: self.worst], random=shown[self.worst :])


class ShownExamples(TypedDict):
    """Fields of a report."""

    worst: tuple[Example, ...]
    random: tuple[Example, ...]


class OutputReportBuilder(ABC):
    """Measures one output and builds its report.

    Args:
        output: The output.

    Attributes:
        width: Values of each example, of which the first is the loss.
        totals: Values that are summed.
        worst: Number of the worst examples that are shown.
        random: Number of others.
    """

    width = 1
    totals = 0
    worst = 24
    random = 0

    def __init__(self, output: ModelOutput) -> None:
        self.output = output

    @abstractmethod
    def measure(self, batch: Batch, target: Any, output: Any, mask: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Measure a batch; see :class:`accel_engine.training.evaluation.task_report.TaskReport`.

        Args:
            batch: All of it.
            target: This output's; ``None`` if it has none.
            output: This output, ``[batch, ...]``.
            mask: 1 for each example, 0 for padding.
        """

    @abstractmethod
    def build(
        self, values: npt.NDArray[np.float32], totals: Floats, shown: Shown, predict: Predict | None
    ) -> OutputReport:
        """Build the report.

        Args:
            values: ``[examples, width]``.
            totals: ``[totals]``.
            shown: The examples to show.
            predict: Predicts other inputs.
        """


def worst_rows(losses: npt.NDArray[np.floating[Any]], count: int) -> npt.NDArray[np.int64]:
    """Indices of the highest losses, highest first, NaN before them; of equal ones the first."""
    order: npt.NDArray[np.int64] = np.argsort(-np.nan_to_num(losses, nan=np.inf), kind="stable")
    return order[:count]


def random_rows(examples: int, count: int) -> npt.NDArray[np.int64]:
    """Some indices, in order, the same for the same number of examples."""
    chosen: npt.NDArray[np.int64] = np.random.default_rng(SEED).permutation(examples)[:count]
    return np.sort(chosen)


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
        losses = loss_values(self.output.loss, target, output)
        if losses is None:
            return tf.fill([tf.shape(mask)[0], 1], np.float32(np.nan)), no_totals()
        return mean_of_examples(tf.cast(losses, tf.float32))[:, tf.newaxis], no_totals()

    def build(
        self, values: npt.NDArray[np.float32], totals: Floats, shown: Shown, predict: Predict | None
    ) -> CustomReport:
        """See :class:`OutputReportBuilder`."""
        known = not np.isnan(values[:, 0]).all()
        return CustomReport(
            output=self.output.name,
            examples=len(values),
            worst=shown.examples()["worst"] if known else (),
            reason=self._reason,
            shapes=self._shapes,
        )
