"""Taking a step's batch in parts whose gradients are summed: micro-batches, also called gradient accumulation.

Asked for, one part is taken after another, in less memory. Tried on a CPU, each core takes parts of its own, which its
caches hold: convolutional networks were 1.3 to 1.8 times as fast on one, and no faster on another
(benchmarks/README.md).
"""

import re
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from accel_engine.training.flops import loop_name
from accel_engine.training.label_encoding import Loss, only
from accel_engine.training.layer_table import walk

LARGEST, SMALLEST = 48, 8
"""Examples of a part on a CPU at most, so that their activations stay in the caches; and at least, for parts to pay."""

_ONE_BY_ONE = re.compile(
    r"(Depthwise|Separable)?Conv[123]D\w*|Dense|\w+Pooling\w+|ReLU|LeakyReLU|PReLU|ELU|Softmax|Activation|Dropout"
    r"|SpatialDropout\w+|Flatten|Reshape|Permute|ZeroPadding\w+|Cropping\w+|UpSampling\w+|Rescaling|InputLayer"
    r"|LayerNormalization|GroupNormalization|Add|Subtract|Multiply|Average|Maximum|Minimum|Concatenate"
    r"|Sequential|Functional"
)
"""Keras' layers that take every example by itself, whatever else is in its batch."""

_OF_BATCHES = {"circle", "dice", "tversky"}
"""Keras' losses that take a batch as a whole."""

_MEANS = {"sum_over_batch_size", "mean", "mean_with_sample_weight"}
"""Keras' names for the mean over all examples, which have no weights here."""

Learn = Callable[[tf.Tensor, tf.Tensor], tuple[list[Any], list[tf.Tensor]]]
"""From raw examples and sparse labels to the gradients of the variables, and what was measured: float32 scalars."""


def parts_worth_trying(batch: int) -> int:
    """In how many parts a CPU may take a batch faster than whole; 1 where it will not."""
    sizes = range(min(LARGEST, batch // 2), SMALLEST - 1, -1)
    return next((batch // size for size in sizes if batch % size == 0), 1)


def same_in_parts(model: keras.Model) -> bool:
    """Whether a model learns the same from a batch in parts, but for the rounding of sums.

    Not where a layer looks at the whole batch, as batch normalisation does, nor where that cannot be told.
    """
    layers = [model, *(layer for layer, _ in walk(model))]
    return all(_takes_one_by_one(layer) for layer in layers) and is_mean(model.loss)


def _takes_one_by_one(layer: Any) -> bool:
    """Whether a layer takes every example by itself, or a model does between its layers."""
    steps = getattr(layer, "operations", ())  # of a functional model, also what is no layer
    return (
        _is_keras_own(layer)
        and _ONE_BY_ONE.fullmatch(type(layer).__name__) is not None
        and all(isinstance(step, keras.Layer) for step in steps)
        and _is_keras_own(getattr(layer, "activation", keras.activations.linear))
        and not penalizes_outputs(layer)
    )


def penalizes_outputs(layer: Any) -> bool:
    """Whether a layer's outputs are part of the loss, where Keras takes their sum over a batch, not their mean."""
    return getattr(layer, "activity_regularizer", None) is not None


def is_mean(loss: Loss) -> bool:
    """Whether a loss is one of Keras' own, and its mean over all examples."""
    loss = only(loss)
    known: Any = keras.losses.get(loss) if isinstance(loss, str) else loss
    function = getattr(known, "fn", known)  # that Keras' classes wrap
    if not (_is_keras_own(known) and _is_keras_own(function)) or function.__name__ in _OF_BATCHES:
        return False
    return getattr(known, "reduction", "mean") in _MEANS  # of a function Keras takes the mean


def _is_keras_own(thing: Any) -> bool:
    """Whether a function, or the class of what is none, is Keras'."""
    return str(getattr(thing, "__module__", "")).startswith("keras.")


def in_parts(learn: Learn, variables: list[keras.Variable], measures: int, parts: int, *, abreast: int) -> Learn:
    """Learn from a batch in equal parts: the means of what is learnt from each.

    Args:
        learn: Learns from a batch.
        variables: Those of the gradients.
        measures: How many scalars are measured.
        parts: How many; they divide the batch.
        abreast: How many are taken at the same time at most.
    """

    def learn_in_parts(x: tf.Tensor, y: tf.Tensor) -> tuple[list[Any], list[tf.Tensor]]:
        xs, ys = (tf.reshape(values, [parts, values.shape[0] // parts, *values.shape[1:]]) for values in (x, y))
        missing: set[int] = set()  # gradients that there are none of

        def take(part: tf.Tensor, sums: list[tf.Tensor], measured: list[tf.Tensor]) -> tuple[Any, ...]:
            gradients, values = learn(xs[part], ys[part])
            missing.update(index for index, gradient in enumerate(gradients) if gradient is None)  # once a trace
            return part + 1, _added(sums, gradients), _added(measured, values)

        nothing = [tf.zeros(variable.shape, variable.dtype) for variable in variables]
        _, sums, measured = tf.while_loop(
            lambda part, *_: part < parts,
            take,
            (tf.constant(0), nothing, [tf.constant(0.0)] * measures),
            parallel_iterations=abreast,
            name=loop_name(parts),
        )
        means = [None if index in missing else total / parts for index, total in enumerate(sums)]
        return means, [total / parts for total in measured]

    return learn_in_parts


def _added(sums: list[tf.Tensor], values: list[Any]) -> list[tf.Tensor]:
    return [total if value is None else total + value for total, value in zip(sums, values, strict=True)]
