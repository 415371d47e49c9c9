"""Replaces Keras' layers with faster kernels while a step is traced: others on CPUs than in XLA on GPUs."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from accel_engine.keras_support.model_structure import override_calls
from accel_engine.private_names.keras_names import all_layers
from accel_engine.training.recurrent_kernels import fast_recurrence

MIN_NORMALIZED = 2**17
"""Elements of a batch from which the kernel of batch normalization is faster; with half as many, Keras takes two thirds
of its time."""

CHANNEL_MULTIPLE = 16
"""The number of channels must be a multiple of this, or the kernel is not vectorized."""

DTYPES = {tf.float32, tf.bfloat16, tf.float16}
"""Input types of the kernel; it computes in float32, as Keras does."""

MIN_CONVOLVED = 2**17
"""Output elements of a batch from which the separate kernel of a convolution was never slower."""


Kernel = Callable[[Any], Callable[..., Any] | None]
"""Gives the faster method of a layer; ``None`` for layers that it is not for."""


def kernels_for(*, on_cpu: bool, on_gpu: bool, xla: bool) -> dict[str, Sequence[Kernel]]:
    """The kernels with which steps are traced, by the method of a layer that they replace.

    With XLA there are some for GPUs only: on a CPU they are no faster than what XLA makes of Keras' own.
    """
    if on_cpu and not xla:
        return CPU_KERNELS
    return GPU_KERNELS if on_gpu and xla else {}


@contextmanager
def use_fast_kernels(model: Any, kernels: Mapping[str, Sequence[Kernel]]) -> Iterator[None]:
    """Use some kernels in the steps of a model that are traced inside the ``with`` block."""
    with ExitStack() as replaced:
        for method, choices in kernels.items():
            found = {layer: next(filter(None, (make(layer) for make in choices)), None) for layer in all_layers(model)}
            fast = {layer: own for layer, own in found.items() if own is not None}
            replaced.enter_context(override_calls(fast, method))
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


def _fast_max_pool(layer: Any) -> Callable[[Any], Any] | None:
    """A ``call`` for Keras' own max pooling whose windows do not overlap and divide its inputs; else ``None``.

    The gradient goes to the first maximum of each window, as Keras' does. For TensorFlow's gradient XLA
    has only an operation that scatters, which is slow on a GPU.
    """
    if type(layer) not in _MAX_POOLS or layer.strides != layer.pool_size:
        return None
    keras_call, first = layer.call, 1 if layer.data_format == "channels_last" else 2

    def call(inputs: Any) -> Any:
        sides = inputs.shape[first : first + len(layer.pool_size)]
        if any(side is None or side % own for side, own in zip(sides, layer.pool_size, strict=True)):
            return keras_call(inputs)
        return _max_pool(inputs, layer.pool_size, first)

    return call


_MAX_POOLS = (keras.layers.MaxPooling1D, keras.layers.MaxPooling2D, keras.layers.MaxPooling3D)


def _max_pool(inputs: tf.Tensor, windows: tuple[int, ...], first: int) -> tf.Tensor:
    """The maximum of each window; the windows' dimensions are next to each other from ``first``."""
    shape, axes = list(tf.unstack(tf.shape(inputs))), [first + 1 + 2 * index for index in range(len(windows))]
    split: list[Any] = [inputs.shape[axis] or side for axis, side in enumerate(shape)]
    for axis, own in zip(reversed(axes), reversed(windows), strict=True):
        place = first + (axis - first) // 2
        split[place : place + 1] = [inputs.shape[place] // own, own]
    # The place of an element in its window, in the order in which a maximum is the first.
    places = np.arange(math.prod(windows), dtype=np.int32).reshape(windows)
    own_place = places.reshape([windows[axes.index(axis)] if axis in axes else 1 for axis in range(len(split))])

    def pool(inputs: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        apart = tf.reshape(inputs, split)
        largest = tf.reduce_max(apart, axes, keepdims=True)

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            place = tf.where(apart == largest, own_place, places.size)
            chosen = own_place == tf.reduce_min(place, axes, keepdims=True)
            spread = tf.reshape(upstream, tf.shape(largest))
            return tf.reshape(tf.where(chosen, spread, tf.zeros_like(spread)), tf.shape(inputs))

        return tf.squeeze(largest, axes), gradient

    return tf.custom_gradient(pool)(inputs)


CPU_KERNELS: dict[str, Sequence[Kernel]] = {"call": (_fast_batch_norm, _fast_convolution)}
"""Kernels for CPUs without XLA."""

GPU_KERNELS: dict[str, Sequence[Kernel]] = {"call": (_fast_max_pool,), "inner_loop": (fast_recurrence,)}
"""Kernels for XLA on GPUs."""
