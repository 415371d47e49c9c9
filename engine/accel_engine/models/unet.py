"""A U-Net for segmentation.

After Ronneberger, Fischer and Brox, "U-Net: Convolutional Networks for Biomedical Image Segmentation" (2015), with
padding, batch normalization and a quarter of its filters.
"""

import keras
from keras import layers

from accel_engine.models.data_description import DataDescription

STAGES = (16, 32, 64, 128)
"""Filters of each stage; all but the first halve height and width."""

MOMENTUM = 0.9
"""Momentum of batch normalization's moving averages."""


def build(data: DataDescription) -> keras.Model:
    """Build the model.

    Args:
        data: Images ``[height, width, channels]`` of any size. They are padded to multiples of 8, and the output is
            cropped.

    Returns:
        An uncompiled model from images to the probabilities of each pixel's classes, float32
        ``[batch, height, width, classes]``.
    """
    inputs = keras.Input(data.shape)
    factor = 2 ** (len(STAGES) - 1)
    missing = [-(side or 0) % factor for side in (data.shape or ())[:2]]
    margins = tuple((each // 2, each - each // 2) for each in missing)
    x = layers.ZeroPadding2D(margins)(inputs) if any(missing) else inputs
    shortcuts = []
    for filters in STAGES[:-1]:
        x = _convolutions(x, filters)
        shortcuts.append(x)
        x = layers.MaxPooling2D(2)(x)
    x = _convolutions(x, STAGES[-1])
    for filters, shortcut in zip(STAGES[-2::-1], reversed(shortcuts), strict=True):
        x = layers.Conv2DTranspose(filters, 2, strides=2)(x)
        x = _convolutions(layers.Concatenate()([shortcut, x]), filters)
    x = layers.Cropping2D(margins)(x) if any(missing) else x
    return keras.Model(inputs, layers.Conv2D(data.classes, 1, activation="softmax", dtype="float32")(x), name="unet")


def _convolutions(x: keras.KerasTensor, filters: int) -> keras.KerasTensor:
    for _ in range(2):
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.ReLU()(layers.BatchNormalization(momentum=MOMENTUM)(x))
    return x
