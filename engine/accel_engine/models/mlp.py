"""A multilayer perceptron: one hidden layer of 128 units."""

import keras
from keras import layers

from accel_engine.models.data_description import DataDescription
from accel_engine.models.outputs import output_layers


def build(data: DataDescription) -> keras.Model:
    """Build the model: 101,770 weights for 28x28 images in 10 classes.

    Args:
        data: Examples of any fixed shape.

    Returns:
        An uncompiled model from examples to :func:`~accel_engine.models.outputs.output`.
    """
    return keras.Sequential(
        [keras.Input(data.shape), layers.Flatten(), layers.Dense(128, activation="relu"), *output_layers(data)],
        name="mlp",
    )
