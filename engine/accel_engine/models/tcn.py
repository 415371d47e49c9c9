"""A temporal convolutional network: residual blocks whose convolutions are dilated more and more.

After Bai, Kolter and Koltun, "An Empirical Evaluation of Generic Convolutional and Recurrent Networks for Sequence
Modeling" (2018), with batch normalization.
"""

import keras
from keras import layers

from accel_engine.models.data_description import DataDescription
from accel_engine.models.outputs import output, standardized_inputs

FILTERS = 64
KERNEL = 3
MOMENTUM = 0.9
"""Momentum of batch normalization's moving averages."""

LONGEST = 256
"""Longer sequences, such as sounds, are first shortened by convolutions with a stride of 4."""

MOST_BLOCKS = 7


def build(data: DataDescription) -> keras.Model:
    """Build the model. Its last output depends on the whole sequence; of lengths that differ, on the last 509 steps.

    To predict numbers, it has no batch normalization, and the last layer gets the sequence itself besides: forecasts
    are much better, see benchmarks/README.md.

    Args:
        data: Sequences ``[time, channels]``, of any length.

    Returns:
        An uncompiled model from sequences to :func:`~accel_engine.models.outputs.output`.
    """
    inputs = keras.Input(data.shape)
    x = start = standardized_inputs(inputs, data)
    forecasts = data.task == "regression"
    while x.shape[1] is not None and x.shape[1] > LONGEST:
        x = _convolution(x, kernel=8, strides=4, normalized=not forecasts)
    dilation, blocks = 1, 0
    while blocks == 0 or (blocks < MOST_BLOCKS and dilation * 2 * (KERNEL - 1) <= (x.shape[1] or LONGEST)):
        x = _block(x, dilation, normalized=not forecasts)
        dilation, blocks = 2 * dilation, blocks + 1
    if forecasts:
        parts = [x[:, -1], layers.GlobalAveragePooling1D()(x)]
        parts += [] if None in start.shape[1:] else [layers.Flatten()(start)]
        x = layers.Concatenate()(parts)
    else:
        x = layers.Concatenate()([layers.GlobalMaxPooling1D()(x), layers.GlobalAveragePooling1D()(x)])
        x = layers.Dropout(0.2)(x)
    return keras.Model(inputs, output(x, data), name="tcn")


def _block(x: keras.KerasTensor, dilation: int, *, normalized: bool) -> keras.KerasTensor:
    """Two causal convolutions and a shortcut."""
    residual = _convolution(x, dilation=dilation, normalized=normalized)
    residual = _convolution(residual, dilation=dilation, normalized=normalized)
    if x.shape[-1] != FILTERS:
        x = layers.Conv1D(FILTERS, 1)(x)
    return layers.ReLU()(layers.Add()([residual, x]))


def _convolution(
    x: keras.KerasTensor, kernel: int = KERNEL, strides: int = 1, dilation: int = 1, *, normalized: bool
) -> keras.KerasTensor:
    convolution = layers.Conv1D(
        FILTERS, kernel, strides, padding="causal", dilation_rate=dilation, use_bias=not normalized
    )
    x = convolution(x)
    return layers.ReLU()(layers.BatchNormalization(momentum=MOMENTUM)(x) if normalized else x)
