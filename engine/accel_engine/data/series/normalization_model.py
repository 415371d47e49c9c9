"""Makes the part of a saved model that standardises raw windows; for the engine process only."""

from typing import Any

from accel_engine.data.standardization import Standardization


def normalization_model(window: int, scaling: Standardization) -> Any:
    """A Keras model from raw windows to a model's inputs, ``[batch, window, columns]`` both.

    Args:
        window: Rows of a window.
        scaling: The statistics of the columns.
    """
    import keras

    inputs = keras.Input((window, len(scaling.mean)))
    normalize = keras.layers.Normalization(mean=scaling.mean, variance=scaling.scale**2)
    return keras.Model(inputs, normalize(inputs))
