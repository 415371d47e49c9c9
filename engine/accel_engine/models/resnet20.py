"""The residual network of 20 layers for CIFAR-10, with shortcuts without weights.

After He et al., "Deep Residual Learning for Image Recognition" (2015), section 4.2, option A.
"""

import keras
from keras import layers, ops

from accel_engine.models.data_description import DataDescription
from accel_engine.models.outputs import output

STAGES = (16, 32, 64)
"""Filters of each stage; the second and third halve height and width."""

BLOCKS = 3
"""Blocks of two convolutions in a stage: 6 * 3 + 2 = 20 layers."""

MOMENTUM = 0.9
"""Momentum of batch normalization's moving averages."""


def build(data: DataDescription) -> keras.Model:
    """Build the model: 269,722 trainable weights for RGB images of any size in 10 classes.

    Args:
        data: Images ``[height, width, channels]``, at least 8x8.

    Returns:
        An uncompiled model from images to :func:`~accel_engine.models.outputs.output`.
    """
    inputs = keras.Input(data.shape)
    x = layers.ReLU()(_convolution(inputs, STAGES[0]))
    for filters in STAGES:
        for _ in range(BLOCKS):
            x = _block(x, filters)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, output(x, data), name="resnet20")


def _block(x: keras.KerasTensor, filters: int) -> keras.KerasTensor:
    """Two convolutions and a shortcut; a block with more filters also halves height and width."""
    widens = x.shape[-1] != filters
    residual = layers.ReLU()(_convolution(x, filters, strides=2 if widens else 1))
    residual = _convolution(residual, filters)
    if widens:
        missing = filters - x.shape[-1]
        x = ops.pad(x[:, ::2, ::2], [(0, 0), (0, 0), (0, 0), (missing // 2, missing - missing // 2)])
    return layers.ReLU()(layers.Add()([residual, x]))


def _convolution(x: keras.KerasTensor, filters: int, strides: int = 1) -> keras.KerasTensor:
    x = layers.Conv2D(filters, 3, strides=strides, padding="same", use_bias=False, kernel_initializer="he_normal")(x)
    return layers.BatchNormalization(momentum=MOMENTUM)(x)
