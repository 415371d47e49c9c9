"""Runs Keras' convolutions on CPUs with a separate kernel for the gradient of the bias.

TensorFlow fuses it with oneDNN's gradient of the filters, which took up to three times as long as the two kernels
apart, above all with 32 channels or more (benchmarks/README.md). It fuses them where both read the same tensor, so
this reshapes the tensor for one of them. The results are the same.
"""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

MIN_ELEMENTS = 2**17
"""Output elements of a batch from which this was never slower."""


def fast_call(layer: Any) -> Callable[[Any], Any] | None:
    """A ``call`` with a separate bias gradient, for Keras' own ``Conv2D`` in float32; else ``None``.

    In bfloat16 the separate kernel is no faster, and loses most digits of long sums.
    """
    if type(layer) is not keras.layers.Conv2D or not layer.use_bias or layer.compute_dtype != "float32":
        return None
    if layer.data_format != "channels_last" or layer.groups != 1 or layer.dilation_rate != (1, 1):
        return None  # TensorFlow splits these into several operations
    keras_call = layer.call

    def call(inputs: Any) -> Any:
        if not _is_worthwhile(layer, inputs):
            return keras_call(inputs)
        outputs = _add_bias(layer.convolution_op(inputs, layer.kernel), tf.convert_to_tensor(layer.bias))
        return outputs if layer.activation is None else layer.activation(outputs)

    return call


def _is_worthwhile(layer: Any, inputs: tf.Tensor) -> bool:
    elements = tf.TensorShape(layer.compute_output_shape(inputs.shape)).num_elements()
    return elements is not None and elements >= MIN_ELEMENTS


def _biased(
    outputs: tf.Tensor, bias: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
    """The outputs plus the bias, and the gradient function of both."""

    def gradients(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        rows = tf.reshape(upstream, (-1, upstream.shape[-1]))
        return upstream, tf.raw_ops.BiasAddGrad(out_backprop=rows)

    return tf.nn.bias_add(outputs, bias), gradients


_add_bias = tf.custom_gradient(_biased)
