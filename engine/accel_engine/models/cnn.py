"""A small convolutional network with batch normalization."""

import keras
from keras import layers

from accel_engine.models.data_description import DataDescription
from accel_engine.models.outputs import output_layers

MOMENTUM = 0.8
"""Momentum of batch normalization's moving averages.

After n steps, their initial values still have the weight ``MOMENTUM ** n``. At Keras' default of 0.99, the validation
accuracy of the first epochs on small data is at chance, and with 0.9 so is the first epoch on ``digits`` (22
steps); at 0.8 it is 0.6 to 0.8.
"""


def build(data: DataDescription) -> keras.Model:
    """Build the model: 94,186 trainable weights for grayscale images of any size in 10 classes.

    Args:
        data: Images ``[height, width, channels]``, at least 8x8.

    Returns:
        An uncompiled model from images to :func:`~accel_engine.models.outputs.output`.
    """
    return keras.Sequential(
        [
            keras.Input(data.shape),
            *_convolution(32),
            layers.MaxPooling2D(2),
            *_convolution(64),
            layers.MaxPooling2D(2),
            *_convolution(128),
            layers.GlobalMaxPooling2D(),  # more accurate on small data than an average, see benchmarks/README.md
            layers.Dropout(0.2),
            *output_layers(data),
        ],
        name="cnn",
    )


def _convolution(filters: int) -> list[keras.Layer]:
    return [
        layers.Conv2D(filters, 3, padding="same", use_bias=False),
        layers.BatchNormalization(momentum=MOMENTUM),
        layers.ReLU(),
    ]
