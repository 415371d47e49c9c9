"""Linear and logistic regression."""

import keras
from keras import layers

from accel_engine.models.data_description import DataDescription
from accel_engine.models.outputs import output, standardized_inputs


def build(data: DataDescription) -> keras.Model:
    """Build the model: one weight for each pair of an input and an output, and a bias for each output.

    Args:
        data: Examples of any fixed shape.

    Returns:
        An uncompiled model from examples to :func:`~accel_engine.models.outputs.output`.
    """
    inputs = keras.Input(data.shape)
    x = standardized_inputs(layers.Flatten()(inputs), data)
    return keras.Model(inputs, output(x, data), name="linear")
