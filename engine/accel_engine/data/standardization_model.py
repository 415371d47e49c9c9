"""Standardises columns in a Keras model as :class:`~accel_engine.data.standardization.Standardization` does."""

from typing import Any

import keras
import numpy as np

from accel_engine.data.standardization import Standardization


def standardized(values: Any, scaling: Standardization) -> Any:
    """Standardise a tensor, ``[..., columns]``.

    Keras' ``Normalization`` takes variances, which leave the range of float32 long before the numbers do, and never
    divides by less than 1e-7. What float32 cannot hold of a mean is subtracted after the division.

    Args:
        values: A symbolic tensor. It is computed with in its own type, float64 or float32.
        scaling: The statistics of its columns.

    Returns:
        float32, of the same shape.
    """
    centre = scaling.mean.astype(np.float32).astype(np.float64)
    rest = (scaling.mean - centre) / scaling.scale
    centred = keras.layers.Rescaling(1.0, (-centre).tolist(), dtype=values.dtype)(values)
    divided = keras.layers.Rescaling((1 / scaling.scale).tolist(), (-rest).tolist(), dtype=values.dtype)(centred)
    return keras.ops.cast(divided, "float32")
