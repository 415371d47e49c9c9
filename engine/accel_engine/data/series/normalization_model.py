"""Makes the part of a saved model that standardises raw windows; for the engine process only."""

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
        normalize = keras.layers.Normalization(mean=self.scaling.mean, variance=self.scaling.scale**2)
        return keras.Model(inputs, normalize(inputs))
