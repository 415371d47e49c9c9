"""What a validation collects for the diagnostics of a task: the interface of the builders in ``reports``."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.structure import Batch, Structure
from accel_engine.run.diagnostics import DiagnosticsItem

ReadExamples: TypeAlias = Callable[[npt.NDArray[np.int64]], tuple[Batch, Structure]]
"""Returns the examples at some indices, as NumPy arrays before scaling, and the model's outputs for them."""

Predict: TypeAlias = Callable[[Structure], Structure]
"""Returns the model's outputs for some inputs, as NumPy arrays before scaling."""


class TaskReport(Protocol):
    """Measures the examples of a validation and builds what is stored of it.

    Attributes:
        width: Number of values of each example. The first one is the example's loss, or another number that is higher
            for worse examples; NaN is the worst. 0 if nothing is measured.
        totals: Number of values that are summed over all examples.
        worst: How many of the worst examples :meth:`build` reads at most.
        first: How many of the first examples :meth:`build` may read besides.
    """

    width: int
    totals: int
    worst: int
    first: int

    def measure(self, batch: Batch, outputs: Structure, mask: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Measure a batch, in the graph of each replica.

        Args:
            batch: The examples as the model and the loss got them.
            outputs: The model's outputs.
            mask: 1 for each example, 0 for padding; float32 ``[batch]``.

        Returns:
            Values of each example, float32 ``[batch, width]``, and the sums, float32 ``[totals]``.
        """

    def build(
        self,
        values: npt.NDArray[np.float32],
        totals: npt.NDArray[np.float64],
        read: ReadExamples,
        predict: Predict | None = None,
    ) -> tuple[DiagnosticsItem, ...]:
        """Build what is stored.

        Args:
            values: Those of :meth:`measure` for every example, ``[examples, width]``.
            totals: The sums, ``[totals]``.
            read: Reads some examples. Of a stream, they are among the :attr:`worst` with the highest first value, of
                equal ones the first, and among the :attr:`first`.
            predict: Predicts inputs that are not in the data, such as a text that the model continues; ``None`` where
                that is not possible.
        """
