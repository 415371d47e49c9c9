"""The interface of the builders in ``reports``, which collect the diagnostics of a task at a validation."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.dataset import Dataset, Split, take_rows
from accel_engine.data.structure import ArraySpec, Batch, Structure
from accel_engine.run.diagnostics import DiagnosticsItem, InputSpec

ReadExamples: TypeAlias = Callable[[npt.NDArray[np.int64]], tuple[Batch, Structure]]
"""Returns the examples at some indices, as NumPy arrays before scaling, and the model's outputs for them."""

Predict: TypeAlias = Callable[[Structure], Structure]
"""Returns the model's outputs, as NumPy arrays, for inputs before scaling."""


class TaskReport(Protocol):
    """Measures the examples of a validation and builds what is stored of it."""

    width: int
    """Number of values of each example. The first one is the example's loss, or another number that is higher for
    worse examples; NaN is the worst. 0 if nothing is measured."""
    totals: int
    """Number of values that are summed over all examples."""
    worst: int
    """How many of the worst examples :meth:`build` reads at most."""
    first: int
    """How many of the first examples :meth:`build` may read besides."""

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
            values: What :meth:`measure` gave for every example, ``[examples, width]``.
            totals: The sums, ``[totals]``.
            read: Reads some examples. Of a stream, they are among the :attr:`worst` with the highest first value, of
                equal ones the first, and among the :attr:`first`.
            predict: Predicts inputs that are not in the data, such as a text that the model continues; ``None`` where
                that is not possible.
        """


_EXAMPLES_READ = 256
"""Examples read to find the range of their values."""


def input_spec_of(dataset: Dataset, scale: float) -> InputSpec | None:
    """The input of a model that is trained on the data; ``None`` for several inputs, text, or sizes that vary.

    Args:
        dataset: The data.
        scale: The factor that raw examples are multiplied by.
    """
    spec = dataset.spec.inputs
    if not isinstance(spec, ArraySpec) or spec.dtype == "string" or None in spec.shape:
        return None
    low, high = 0.0, float(dataset.value_range.largest or 0)
    if not high and isinstance(dataset.train, Split) and len(dataset.train):
        some = take_rows(dataset.train.inputs, np.arange(min(_EXAMPLES_READ, len(dataset.train))))
        low, high = _range(float(some.min()), float(some.max()))
    shape = tuple(side or 0 for side in spec.shape)
    return InputSpec(shape, dataset.class_names, scale, low, high, spec.dtype == "uint8")


def _range(least: float, largest: float) -> tuple[float, float]:
    """The usual range of values that contains these, ``[0, 1]``, ``[-1, 1]`` or ``[0, 255]``; else these themselves."""
    for low, high in ((0.0, 1.0), (-1.0, 1.0), (0.0, 255.0)):
        if low <= least and largest <= high:
            return low, high
    return least, largest
