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
        is_precise: Whether the model takes float64, as float32 would lose digits of a column.
    """

    window: int
    scaling: Standardization
    is_precise: bool = False

    @property
    def dtype(self) -> str:
        """The type of raw windows."""
        return "float64" if self.is_precise else "float32"

    def __call__(self) -> Any:
        """The Keras model."""
        import keras

        from accel_engine.data.standardization_model import standardized

        inputs = keras.Input((self.window, len(self.scaling.mean)), dtype=self.dtype)
        return keras.Model(inputs, standardized(inputs, self.scaling, "windows"))
