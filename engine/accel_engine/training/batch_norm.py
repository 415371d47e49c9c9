"""Batch normalization by TensorFlow's fused kernel, in place of the many operations that Keras makes of it.

Never where XLA compiles the step: it fuses Keras' operations by itself, and takes the kernel's variance from a
difference of squares, which is wrong where the mean is large.
"""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

LEAST = 2**17
"""Elements of a batch for which the kernel pays; for half as many, Keras' operations take two thirds of its time."""

CHANNELS = 16
"""What their number has to divide by, lest the kernel take them one by one."""

TYPES = {tf.float32, tf.bfloat16, tf.float16}
"""What the kernel takes; it computes in float32, as Keras does."""


def faster(layer: Any) -> Callable[..., Any] | None:
    """Another call for a layer that the kernel can stand for: exactly Keras' own, of one replica's batch."""
    renorm = getattr(layer, "renorm", False)  # older ones of Keras have none
    if type(layer) is not keras.layers.BatchNormalization or renorm or layer.synchronized:
        return None
    keras_own = layer.call

    def call(inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        if training and layer.trainable and mask is None and _pays(layer, inputs):
            return _normalize(layer, inputs)
        return keras_own(inputs, training=training, mask=mask)

    return call


def _pays(layer: Any, inputs: tf.Tensor) -> bool:
    elements = inputs.shape.num_elements()
    if elements is None or elements < LEAST or inputs.dtype not in TYPES:
        return False
    return layer.axis in (-1, inputs.shape.rank - 1) and inputs.shape[-1] % CHANNELS == 0


def _normalize(layer: Any, inputs: tf.Tensor) -> tf.Tensor:
    """Keras' own ``call`` in training: outputs of the batch's moments, which the moving ones take in."""
    channels = inputs.shape[-1]
    unknown = tf.zeros([0])
    outputs, mean, variance, *_ = tf.raw_ops.FusedBatchNormV3(
        x=inputs if inputs.shape.rank == 4 else tf.reshape(inputs, (-1, 1, 1, channels)),
        scale=tf.cast(layer.gamma, tf.float32) if layer.scale else tf.ones(channels),
        offset=tf.cast(layer.beta, tf.float32) if layer.center else tf.zeros(channels),
        mean=unknown,
        variance=unknown,
        epsilon=layer.epsilon,
        is_training=True,
    )
    count = inputs.shape.num_elements() // channels
    variance *= (count - 1) / count  # the kernel's has Bessel's correction
    for moving, now in ((layer.moving_mean, mean), (layer.moving_variance, variance)):
        moving.assign(tf.cast(moving, tf.float32) * layer.momentum + now * (1.0 - layer.momentum))
    return tf.cast(tf.reshape(outputs, inputs.shape), layer.compute_dtype)
