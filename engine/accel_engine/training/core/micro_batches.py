"""Splits a step's batch into micro-batches and accumulates their gradients.

A plan's micro-batches run one after another, to save memory. The autotuner's run in parallel on the cores of a CPU,
whose caches hold them: convolutional networks were 1.3 to 1.8 times as fast on one CPU, and no faster
on another (benchmarks/README.md).
"""

import re
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import keras
import tensorflow as tf

from accel_engine.data.structure import Batch, Structure, flatten, map_structure
from accel_engine.keras_support.divisibility import penalizes_outputs
from accel_engine.keras_support.losses import is_keras_defined, is_mean
from accel_engine.keras_support.model_structure import walk
from accel_engine.training.model_analysis.flops import loop_name

MAX_SIZE, MIN_SIZE = 48, 8
"""Examples per micro-batch on a CPU: at most, to fit the caches, and at least, to be worthwhile."""

_PER_EXAMPLE_LAYERS = re.compile(
    r"(Depthwise|Separable)?Conv[123]D\w*|Dense|\w+Pooling\w+|ReLU|LeakyReLU|PReLU|ELU|Softmax|Activation|Dropout"
    r"|SpatialDropout\w+|Flatten|Reshape|Permute|ZeroPadding\w+|Cropping\w+|UpSampling\w+|Rescaling|InputLayer"
    r"|LayerNormalization|GroupNormalization|Add|Subtract|Multiply|Average|Maximum|Minimum|Concatenate"
    r"|Sequential|Functional"
)
"""Keras' layers that compute every example independently of the rest of its batch."""

GradientFunction = Callable[[Structure], tuple[list[Any], list[tf.Tensor]]]
"""From a raw batch to the gradients of the variables and measured values, float32 tensors."""


def candidate_count(batch: int) -> int:
    """The number of micro-batches worth trying for a batch on a CPU; 1 if there is none."""
    sizes = range(min(MAX_SIZE, batch // 2), MIN_SIZE - 1, -1)
    return next((batch // size for size in sizes if batch % size == 0), 1)


def part_sizes(count: int, whole: int, batch: Batch) -> dict[int, int]:
    """Into how many parts of which sizes to split a batch: no part is larger than the parts of a whole batch.

    Args:
        count: Number of parts of a whole batch.
        whole: Examples of a whole batch.
        batch: The batch, whole or the last, smaller one of an epoch.

    Returns:
        The number of parts by size: of one size, or of two that differ by one example. Empty for a batch that is not
        split.
    """
    examples = flatten(batch)[0].shape[0]
    if count == 1 or examples is None:
        return {}
    parts = -(-examples // (whole // count))
    size, more = divmod(examples, parts)
    sizes = {size + 1: more, size: parts - more} if more else {size: parts}
    return sizes if parts > 1 else {}


def slices(sizes: dict[int, int], batch: Structure) -> list[Structure]:
    """The examples of all parts of one size, for each size of :func:`part_sizes`."""
    ends = list(accumulate(size * count for size, count in sizes.items()))
    return [
        map_structure(lambda values, own=slice(first, end): values[own], batch) for first, end in pairwise([0, *ends])
    ]


def supports_micro_batches(model: keras.Model) -> bool:
    """Whether micro-batches give the same gradients as the whole batch, but for the rounding of sums.

    Not with layers that depend on the whole batch, such as batch normalization, nor with unknown layers.
    """
    layers = [model, *(layer for layer, _ in walk(model))]
    return all(_is_per_example(layer) for layer in layers) and is_mean(model.loss)


def _is_per_example(layer: Any) -> bool:
    """Whether a layer, or a model between its layers, computes every example independently."""
    operations = getattr(layer, "operations", ())  # of a functional model, not only layers
    return (
        is_keras_defined(layer)
        and _PER_EXAMPLE_LAYERS.fullmatch(type(layer).__name__) is not None
        and all(isinstance(operation, keras.Layer) for operation in operations)
        and is_keras_defined(getattr(layer, "activation", keras.activations.linear))
        and not penalizes_outputs(layer)
    )


def accumulate_gradients(
    compute_gradients: GradientFunction,
    variables: list[keras.Variable],
    shapes: Sequence[tuple[int, ...]],
    count: int,
    *,
    parallel_iterations: int,
) -> GradientFunction:
    """Return a function that computes the mean gradients and the sums of measured values over equal micro-batches.

    Args:
        compute_gradients: Computes the gradients and the measured values of a batch.
        variables: The variables of the gradients.
        shapes: Shapes of the measured values.
        count: Number of micro-batches, which divides the batch size.
        parallel_iterations: How many run at the same time at most.
    """

    def compute_accumulated(batch: Structure) -> tuple[list[Any], list[tf.Tensor]]:
        parts = map_structure(
            lambda values: tf.reshape(values, [count, values.shape[0] // count, *values.shape[1:]]), batch
        )
        missing: set[int] = set()  # indices of variables without a gradient

        def take(part: tf.Tensor, sums: list[tf.Tensor], measured: list[tf.Tensor]) -> tuple[Any, ...]:
            gradients, values = compute_gradients(map_structure(lambda each: each[part], parts))
            missing.update(index for index, gradient in enumerate(gradients) if gradient is None)  # once per trace
            return part + 1, _added(sums, gradients), _added(measured, values)

        zeros = [tf.zeros(variable.shape, variable.dtype) for variable in variables]
        _, sums, measured = tf.while_loop(
            lambda part, *_: part < count,
            take,
            (tf.constant(0), zeros, [tf.zeros(shape) for shape in shapes]),
            parallel_iterations=parallel_iterations,
            name=loop_name(count),
        )
        means = [None if index in missing else each / count for index, each in enumerate(sums)]
        return means, measured

    return compute_accumulated


def weighted_means(parts: Sequence[tuple[int, list[Any], list[tf.Tensor]]]) -> tuple[list[Any], list[tf.Tensor]]:
    """The mean gradients and the measured values of a batch whose parts have different sizes.

    Args:
        parts: Of all parts of one size, their examples, their mean gradients and what was measured: their mean loss,
            then sums.
    """
    total = sum(examples for examples, _, _ in parts)
    shares = [examples / total for examples, _, _ in parts]

    def mean(values: Sequence[Any]) -> Any:
        if values[0] is None:
            return None
        return tf.add_n([tf.constant(share, value.dtype) * value for share, value in zip(shares, values, strict=True)])

    gradients = [mean(values) for values in zip(*(found for _, found, _ in parts), strict=True)]
    losses, *sums = zip(*(measured for _, _, measured in parts), strict=True)
    return gradients, [mean(losses), *(tf.add_n(values) for values in sums)]


def _added(sums: list[tf.Tensor], values: list[Any]) -> list[tf.Tensor]:
    return [total if value is None else total + value for total, value in zip(sums, values, strict=True)]
