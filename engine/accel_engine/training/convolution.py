"""Convolutions whose biases get their gradients by a kernel of their own.

TensorFlow has oneDNN work them out within the gradient of the filters, which took up to three times as long as both
apart, most of all where channels are 32 or more (benchmarks/README.md). It does so wherever both kernels are given the
same tensor, so here the one is given another shape of it. The sums are the same.
"""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

LEAST = 2**17
"""Elements of a batch's outputs from which on that was never slower."""


def faster(layer: Any) -> Callable[[Any], Any] | None:
    """Another call for a layer that this is for: exactly Keras' own, in float32.

    In bfloat16 the kernel by itself is no faster, and loses most digits of long sums.
    """
    if type(layer) is not keras.layers.Conv2D or not layer.use_bias or layer.compute_dtype != "float32":
        return None
    if layer.data_format != "channels_last" or layer.groups != 1 or layer.dilation_rate != (1, 1):
        return None  # TensorFlow makes more than one operation of them, between which is what the kernels are given
    keras_own = layer.call

    def call(inputs: Any) -> Any:
        if not _pays(layer, inputs):
            return keras_own(inputs)
        outputs = _add_bias(layer.convolution_op(inputs, layer.kernel), tf.convert_to_tensor(layer.bias))
        return outputs if layer.activation is None else layer.activation(outputs)

    return call


def _pays(layer: Any, inputs: tf.Tensor) -> bool:
    elements = tf.TensorShape(layer.compute_output_shape(inputs.shape)).num_elements()
    return elements is not None and elements >= LEAST


def _biased(
    outputs: tf.Tensor, bias: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
    """Outputs with their bias, and the gradients of both from that of the sum."""

    def gradients(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        rows = tf.reshape(upstream, (-1, upstream.shape[-1]))
        return upstream, tf.raw_ops.BiasAddGrad(out_backprop=rows)

    return tf.nn.bias_add(outputs, bias), gradients


_add_bias = tf.custom_gradient(_biased)
