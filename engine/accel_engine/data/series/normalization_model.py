"""Makes the parts of a saved model that standardise raw windows and restore units; for the engine process only."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from accel_engine.data.standardization import Standardization


@dataclass(frozen=True, slots=True)
class WindowNormalization:
    """Makes a Keras model from raw windows to a model's inputs, ``[batch, window, columns]`` both.

    Attributes:
        window: Rows of a window.
        scaling: The statistics of the columns.
    """

    window: int
    scaling: Standardization

    def __call__(self) -> Any:
        """The Keras model."""
        import keras

        inputs = keras.Input((self.window, len(self.scaling.mean)))
        normalize = keras.layers.Normalization(
            mean=self.scaling.mean,
            variance=self.scaling.scale**2,
            dtype="float32",  # also of half precision runs
        )
        return keras.Model(inputs, normalize(inputs))


def in_units(outputs: Any, scaling: Standardization, shape: Sequence[int]) -> Any:
    """Outputs in the units of the targets, by layers.

    Args:
        outputs: A symbolic tensor ``[batch, ...]`` of standardised values.
        scaling: The statistics of the targets' columns.
        shape: The shape of an example's targets, which outputs of as many values get.
    """
    import keras

    shaped = reshaped(outputs.shape[1:], shape)
    values = keras.layers.Reshape(shaped, dtype="float32")(outputs) if shaped != tuple(outputs.shape[1:]) else outputs
    scale, mean = (each.astype("float32") for each in (scaling.scale, scaling.mean))
    return keras.layers.Rescaling(scale.tolist(), mean.tolist(), dtype="float32", name="units")(values)


def fits_units(outputs: Any, scaling: Standardization, shape: Sequence[int]) -> bool:
    """Whether outputs are those of one tensor that has the units of the targets; see :func:`in_units`."""
    if isinstance(outputs, dict | list | tuple):
        return False
    return len(scaling.mean) == 1 or reshaped(outputs.shape[1:], shape)[-1:] == (len(scaling.mean),)


def reshaped(own: Sequence[int | None], shape: Sequence[int]) -> tuple[int | None, ...]:
    """The shape in which an output is shown: that of its targets, if it has as many values."""
    sides = [side for side in own if side is not None]
    return tuple(shape) if len(sides) == len(own) and math.prod(sides) == math.prod(shape) else tuple(own)
