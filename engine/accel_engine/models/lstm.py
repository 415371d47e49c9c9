"""A long short-term memory network of two layers, for sequences."""

import keras
from keras import layers

from accel_engine.models.data_description import DataDescription
from accel_engine.models.outputs import output, standardized_inputs

UNITS = 64


def build(data: DataDescription) -> keras.Model:
    """Build the model. It takes time in proportion to the length of a sequence.

    Args:
        data: Sequences ``[time, channels]``.

    Returns:
        An uncompiled model from sequences to :func:`~accel_engine.models.outputs.output`.
    """
    inputs = keras.Input(data.shape)
    x = layers.LSTM(UNITS, return_sequences=True)(standardized_inputs(inputs, data))
    x = layers.LSTM(UNITS)(x)
    return keras.Model(inputs, output(x, data), name="lstm")
