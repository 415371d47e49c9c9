"""A network for the columns of a table: a linear model and two hidden layers, added."""

import keras
from keras import layers

from accel_engine.models.data_description import DataDescription
from accel_engine.models.outputs import output, standardized_inputs

UNITS = 128
DROPOUT = 0.3


def build(data: DataDescription) -> keras.Model:
    """Build the model. Its last layer gets the inputs beside the hidden units, so it never learns less than a line.

    Tables reach it standardised and one-hot encoded, see :mod:`accel_engine.data.tables.preprocessing_model`.

    Args:
        data: Examples of any fixed shape.

    Returns:
        An uncompiled model from examples to :func:`~accel_engine.models.outputs.output`.
    """
    inputs = keras.Input(data.shape)
    flat = x = standardized_inputs(layers.Flatten()(inputs), data)
    for _ in range(2):
        x = layers.Dense(UNITS, activation="relu")(x)
        x = layers.Dropout(DROPOUT)(x)
    x = layers.Concatenate()([x, layers.Dropout(DROPOUT)(flat)])
    return keras.Model(inputs, output(x, data), name="tabular")
