"""Runs Keras' batch normalization with TensorFlow's fused kernel on CPUs.

Not where XLA compiles the step: it fuses Keras' operations itself, and computes the kernel's variance as a
difference of squares, which loses precision where the mean is large.
"""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

MIN_ELEMENTS = 2**17
"""Elements of a batch from which the kernel is faster; with half as many, Keras takes two thirds of its time."""

CHANNEL_MULTIPLE = 16
"""The number of channels must be a multiple of this, or the kernel is not vectorized."""

DTYPES = {tf.float32, tf.bfloat16, tf.float16}
"""Input types of the kernel; it computes in float32, as Keras does."""


def fast_call(layer: Any) -> Callable[..., Any] | None:
    """A ``call`` that uses the kernel, for Keras' own unsynchronized ``BatchNormalization``; else ``None``."""
    renorm = getattr(layer, "renorm", False)  # older versions of Keras have no such attribute
    if type(layer) is not keras.layers.BatchNormalization or renorm or layer.synchronized:
        return None
    keras_call = layer.call

    def call(inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        if training and layer.trainable and mask is None and _is_worthwhile(layer, inputs):
            return _normalize(layer, inputs)
        return keras_call(inputs, training=training, mask=mask)

    return call


def _is_worthwhile(layer: Any, inputs: tf.Tensor) -> bool:
    elements = inputs.shape.num_elements()
    if elements is None or elements < MIN_ELEMENTS or inputs.dtype not in DTYPES:
        return False
    return layer.axis in (-1, inputs.shape.rank - 1) and inputs.shape[-1] % CHANNEL_MULTIPLE == 0


def _normalize(layer: Any, inputs: tf.Tensor) -> tf.Tensor:
    """``call`` in training: normalize by the batch's moments and update the moving averages."""
    channels = inputs.shape[-1]
    unused = tf.zeros([0])
    outputs, mean, variance, *_ = tf.raw_ops.FusedBatchNormV3(
        x=inputs if inputs.shape.rank == 4 else tf.reshape(inputs, (-1, 1, 1, channels)),
        scale=tf.cast(layer.gamma, tf.float32) if layer.scale else tf.ones(channels),
        offset=tf.cast(layer.beta, tf.float32) if layer.center else tf.zeros(channels),
        mean=unused,
        variance=unused,
        epsilon=layer.epsilon,
        is_training=True,
    )
    count = inputs.shape.num_elements() // channels
    variance *= (count - 1) / count  # the kernel applies Bessel's correction
    for moving, now in ((layer.moving_mean, mean), (layer.moving_variance, variance)):
        moving.assign(tf.cast(moving, tf.float32) * layer.momentum + now * (1.0 - layer.momentum))
    return tf.cast(tf.reshape(outputs, inputs.shape), layer.compute_dtype)
