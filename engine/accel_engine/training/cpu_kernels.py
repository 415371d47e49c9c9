"""Replaces Keras' layers with faster CPU kernels while a step is traced."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import keras
import tensorflow as tf

from accel_engine.keras_support.model_structure import override_calls
from accel_engine.private_names.keras_names import all_layers

MIN_NORMALIZED = 2**17
"""Elements of a batch from which the kernel of batch normalization is faster; with half as many, Keras takes two thirds
of its time."""

CHANNEL_MULTIPLE = 16
"""The number of channels must be a multiple of this, or the kernel is not vectorized."""

DTYPES = {tf.float32, tf.bfloat16, tf.float16}
"""Input types of the kernel; it computes in float32, as Keras does."""

MIN_CONVOLVED = 2**17
"""Output elements of a batch from which the separate kernel of a convolution was never slower."""


@contextmanager
def use_fast_kernels(model: keras.Model) -> Iterator[None]:
    """Use the faster kernels in the steps of a model that are traced inside the ``with`` block."""
    calls = {
        layer: call for layer in all_layers(model) if (call := _fast_batch_norm(layer) or _fast_convolution(layer))
    }
    with override_calls(calls):
        yield


def _fast_batch_norm(layer: Any) -> Callable[..., Any] | None:
    """A ``call`` with TensorFlow's fused kernel, for Keras' own unsynchronized ``BatchNormalization``; else ``None``.

    Not where XLA compiles the step: it fuses Keras' operations itself, and computes the kernel's variance as a
    difference of squares, which loses precision where the mean is large.
    """
    renorm = getattr(layer, "renorm", False)  # older versions of Keras have no such attribute
    if type(layer) is not keras.layers.BatchNormalization or renorm or layer.synchronized:
        return None
    keras_call = layer.call

    def call(inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        if training and layer.trainable and mask is None and _normalizes_faster(layer, inputs):
            return _normalize(layer, inputs)
        return keras_call(inputs, training=training, mask=mask)

    return call


def _normalizes_faster(layer: Any, inputs: tf.Tensor) -> bool:
    elements = inputs.shape.num_elements()
    if elements is None or elements < MIN_NORMALIZED or inputs.dtype not in DTYPES:
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


def _fast_convolution(layer: Any) -> Callable[[Any], Any] | None:
    """A ``call`` with a separate kernel for the bias gradient, for Keras' own ``Conv2D`` in float32; else ``None``.

    TensorFlow fuses it with oneDNN's gradient of the filters, which took up to three times as long as the two kernels
    apart, above all with 32 channels or more (benchmarks/README.md). It fuses them where both read the same tensor, so
    this reshapes the tensor for one of them. The results are the same.

    In bfloat16 the separate kernel is no faster, and loses most digits of long sums.
    """
    if type(layer) is not keras.layers.Conv2D or not layer.use_bias or layer.compute_dtype != "float32":
        return None
    if layer.data_format != "channels_last" or layer.groups != 1 or layer.dilation_rate != (1, 1):
        return None  # TensorFlow splits these into several operations
    keras_call = layer.call

    def call(inputs: Any) -> Any:
        if not _convolves_faster(layer, inputs):
            return keras_call(inputs)
        outputs = _add_bias(layer.convolution_op(inputs, layer.kernel), tf.convert_to_tensor(layer.bias))
        return outputs if layer.activation is None else layer.activation(outputs)

    return call


def _convolves_faster(layer: Any, inputs: tf.Tensor) -> bool:
    elements = tf.TensorShape(layer.compute_output_shape(inputs.shape)).num_elements()
    return elements is not None and elements >= MIN_CONVOLVED


def _biased(
    outputs: tf.Tensor, bias: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
    """The outputs plus the bias, and the gradient function of both."""

    def gradients(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        rows = tf.reshape(upstream, (-1, upstream.shape[-1]))
        return upstream, tf.raw_ops.BiasAddGrad(out_backprop=rows)

    return tf.nn.bias_add(outputs, bias), gradients


_add_bias = tf.custom_gradient(_biased)
