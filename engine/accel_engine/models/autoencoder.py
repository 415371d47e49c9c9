"""An autoencoder: it learns to reconstruct its inputs from a code of 64 numbers."""

import math

import keras
from keras import layers

from accel_engine.models.data_description import IMAGES, DataDescription
from accel_engine.models.outputs import flat_size

CODE = 64
"""Numbers of the code, output of the layer ``code``."""

FILTERS = (32, 64)
"""Filters of each convolution, which halves height and width."""

UNITS = 256
"""Units of the hidden layers for examples that are not images."""


def build(data: DataDescription) -> keras.Model:
    """Build the model: convolutions for images, dense layers for other examples.

    Args:
        data: Examples of any fixed shape.

    Returns:
        An uncompiled model from examples to float32 of their shape.
    """
    inputs = keras.Input(data.shape)
    x = _images(inputs) if data.form == IMAGES else _numbers(inputs, data)
    return keras.Model(inputs, x, name="autoencoder")


def _images(inputs: keras.KerasTensor) -> keras.KerasTensor:
    height, width, channels = inputs.shape[1:]
    x = inputs
    for filters in FILTERS:
        x = layers.Conv2D(filters, 3, strides=2, padding="same", activation="relu")(x)
    small = x.shape[1:]
    x = layers.Dense(CODE, name="code")(layers.Flatten()(x))
    x = layers.Dense(math.prod(small), activation="relu")(x)
    x = layers.Reshape(small)(x)
    for filters in reversed(FILTERS):
        x = layers.Conv2DTranspose(filters, 3, strides=2, padding="same", activation="relu")(x)
    if (excess := (x.shape[1] - height, x.shape[2] - width)) != (0, 0):
        x = layers.Cropping2D(((0, excess[0]), (0, excess[1])))(x)
    return layers.Conv2D(channels, 3, padding="same", dtype="float32")(x)


def _numbers(inputs: keras.KerasTensor, data: DataDescription) -> keras.KerasTensor:
    x = layers.Dense(UNITS, activation="relu")(layers.Flatten()(inputs))
    x = layers.Dense(min(CODE, max(1, flat_size(data) // 2)), name="code")(x)
    x = layers.Dense(UNITS, activation="relu")(x)
    x = layers.Dense(flat_size(data), dtype="float32")(x)
    return layers.Reshape(inputs.shape[1:])(x)
