"""Describes the input of a run's model, with which its images are shown and predicted."""

import numpy as np

from accel_engine.data.dataset import Dataset, Split, take_rows
from accel_engine.data.structure import ArraySpec
from accel_engine.run.diagnostics import InputSpec

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
