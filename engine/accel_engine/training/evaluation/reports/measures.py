"""Measurements of a batch in its graph, for reports: losses of examples, probabilities, histograms, confusion."""

import math
from typing import Any

import keras
import tensorflow as tf

from accel_engine.keras_support.losses import Loss, single_loss
from accel_engine.run.diagnostics.reports import SCORE_BINS

EPSILON = 1e-7
"""Smallest probability of which a logarithm is taken, as in Keras' losses."""


def example_losses(loss: Loss, targets: Any, outputs: Any, own: tf.Tensor) -> tf.Tensor:
    """The loss of each example, float32 ``[batch]``, without sample weights.

    Args:
        loss: The output's loss.
        targets: As the loss takes them.
        outputs: The model's.
        own: What to use instead where the loss gives no value for each example, ``[batch, ...]``.
    """
    values = loss_values(loss, targets, outputs)
    return mean_of_examples(tf.cast(own if values is None else values, tf.float32))


def loss_values(loss: Loss, targets: Any, outputs: Any) -> tf.Tensor | None:
    """A loss before its reduction, ``[batch, ...]``; ``None`` where it gives no value for each example."""
    loss = single_loss(loss)
    if loss is None or isinstance(loss, list | dict) or targets is None:
        return None
    function: Any = keras.losses.get(loss) if isinstance(loss, str) else loss
    # As Keras calls them, but without a reduction.
    targets, outputs = tf.cast(targets, tf.float32), tf.cast(outputs, tf.float32)
    if isinstance(function, keras.losses.Loss):
        values = function.call(targets, outputs)
    else:
        values = function(*_of_one_rank(targets, outputs))
    return values if values.shape.rank and values.shape[0] == outputs.shape[0] else None


def _of_one_rank(targets: tf.Tensor, outputs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Targets ``[batch]`` for outputs ``[batch, 1]``, and the other way round, in one shape, as in ``fit``."""
    ranks = targets.shape.rank, outputs.shape.rank
    if ranks[0] + 1 == ranks[1] and outputs.shape[-1] == 1:
        return tf.expand_dims(targets, -1), outputs
    if ranks[0] == ranks[1] + 1 and targets.shape[-1] == 1:
        return targets, tf.expand_dims(outputs, -1)
    return targets, outputs


def mean_of_examples(values: tf.Tensor) -> tf.Tensor:
    """Mean over all axes but the first, ``[batch]``."""
    return tf.reduce_mean(values, axis=list(range(1, values.shape.rank))) if values.shape.rank > 1 else values


def probabilities(outputs: tf.Tensor, *, logits: bool, binary: bool) -> tf.Tensor:
    """Probabilities of classes over the last axis, float32.

    Outputs outside of [0, 1], as with a custom loss, are treated as logits.

    Args:
        outputs: ``[..., units]``.
        logits: Whether they are logits.
        binary: Whether the single unit is for the second of two classes, ``[..., 1]``; the result has both.
    """
    outputs = tf.cast(outputs, tf.float32)
    if binary:
        positive = scores(outputs, logits=logits)
        return tf.concat([1 - positive, positive], axis=-1)
    scaled = tf.nn.softmax(outputs)
    return scaled if logits else tf.where(_are_probabilities(outputs), outputs, scaled)


def scores(outputs: tf.Tensor, *, logits: bool) -> tf.Tensor:
    """The probability of each label, float32; see :func:`probabilities`."""
    outputs = tf.cast(outputs, tf.float32)
    return tf.sigmoid(outputs) if logits else tf.where(_are_probabilities(outputs), outputs, tf.sigmoid(outputs))


def class_indices(targets: tf.Tensor, outputs: tf.Tensor) -> tf.Tensor:
    """True classes, int32, from class indices or one-hot vectors.

    Args:
        targets: ``[...]``, ``[..., 1]`` or one-hot ``[..., units]``; for a single unit, floats above 0.5 are the second
            class.
        outputs: ``[..., units]``.

    Returns:
        ``[...]``.
    """
    units = outputs.shape[-1]
    if targets.shape.rank == outputs.shape.rank:
        if units != 1 and targets.shape[-1] == units:
            return tf.argmax(targets, axis=-1, output_type=tf.int32)
        targets = targets[..., 0]
    if units == 1 and targets.dtype.is_floating:
        return tf.cast(targets > 0.5, tf.int32)
    return tf.cast(targets, tf.int32)


def take_class(values: tf.Tensor, classes: tf.Tensor) -> tf.Tensor:
    """The value of a class, from values over the last axis; of the nearest class where there is no such class."""
    safe = tf.clip_by_value(classes, 0, tf.shape(values)[-1] - 1)
    return tf.gather(values, safe, axis=-1, batch_dims=values.shape.rank - 1)


def negative_log(chances: tf.Tensor) -> tf.Tensor:
    """The cross-entropy of the probability of the true class."""
    return -tf.math.log(tf.maximum(chances, EPSILON))


def compared_classes(outputs: tf.Tensor, targets: tf.Tensor, *, logits: bool) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """True classes, predicted classes and cross-entropies of outputs that may be large, without all probabilities.

    Args:
        outputs: ``[..., units]``; a single unit is for the second of two classes.
        targets: As :func:`class_indices` takes them.
        logits: Whether the outputs are logits.

    Returns:
        Class indices, int32 ``[...]``, and float32 ``[...]``.
    """
    classes = class_indices(targets, outputs)
    if outputs.shape[-1] == 1:
        chances = probabilities(outputs, logits=logits, binary=True)
        return classes, tf.argmax(chances, axis=-1, output_type=tf.int32), negative_log(take_class(chances, classes))
    outputs = tf.cast(outputs, tf.float32)
    chosen = take_class(outputs, classes)
    losses = tf.reduce_logsumexp(outputs, axis=-1) - chosen
    if not logits:
        losses = tf.where(_are_probabilities(outputs)[..., 0], negative_log(chosen), losses)
    return classes, tf.argmax(outputs, axis=-1, output_type=tf.int32), losses


def counted_cells(cells: tf.Tensor, weights: tf.Tensor, size: int) -> tf.Tensor:
    """Count indices from 0 to before ``size`` where their weight is 1, float32 ``[size]``.

    Counting in float32 would end at 2**24.
    """
    flat, ones = tf.reshape(cells, [-1]), tf.reshape(tf.cast(weights, tf.int32), [-1])
    valid = (flat >= 0) & (flat < size)
    ones = tf.where(valid, ones, 0)
    return tf.cast(tf.math.unsorted_segment_sum(ones, tf.where(valid, flat, 0), size), tf.float32)


def confusion(true: tf.Tensor, predicted: tf.Tensor, weights: tf.Tensor, classes: int) -> tf.Tensor:
    """The confusion matrix as a vector, then how many have no true class, float32 ``[classes ** 2 + 1]``.

    Args:
        true: Class indices, int32 of any shape.
        predicted: The same.
        weights: 1 for what counts, 0 for what does not, of the same shape.
        classes: Number of classes.
    """
    known = (true >= 0) & (true < classes)
    cells = tf.where(known, true * classes + tf.clip_by_value(predicted, 0, classes - 1), classes * classes)
    return counted_cells(cells, weights, classes * classes + 1)


def score_histograms(values: tf.Tensor, positive: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Histograms of the probabilities of labels, first of positives, float32 ``[2 * labels * SCORE_BINS]``.

    Args:
        values: ``[batch, labels]``; values that are not finite are left out.
        positive: Whether an example has the label, bool.
        weights: 1 for each example that counts, ``[batch]``.
    """
    labels = int(values.shape[-1])
    finite = tf.math.is_finite(values)
    bins = tf.cast(tf.where(finite, values, 0.0) * SCORE_BINS, tf.int32)
    cells = tf.where(positive, 0, labels) + tf.range(labels)
    cells = cells * SCORE_BINS + tf.clip_by_value(bins, 0, SCORE_BINS - 1)
    count = tf.where(finite, tf.cast(weights, tf.int32)[:, tf.newaxis], 0)
    return counted_cells(cells, count, 2 * labels * SCORE_BINS)


def error_sums(errors: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Sums of absolute and squared errors, and how many are finite, float32 ``[3]``.

    Args:
        errors: ``[batch, ...]``.
        mask: ``[batch]``.
    """
    weights = broadcast(mask, errors)
    finite = tf.math.is_finite(errors) & (weights > 0)
    known = tf.where(finite, errors, 0.0)
    return tf.stack(
        [tf.reduce_sum(tf.abs(known)), tf.reduce_sum(tf.square(known)), tf.reduce_sum(tf.cast(finite, tf.float32))]
    )


def broadcast(mask: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """A mask ``[batch]`` in the shape of values ``[batch, ...]``."""
    shaped = tf.reshape(mask, [-1] + [1] * (values.shape.rank - 1))
    return tf.broadcast_to(shaped, tf.shape(values))


def flat_values(values: tf.Tensor) -> tf.Tensor:
    """Values of each example as a row, float32 ``[batch, units]``."""
    values = tf.cast(values, tf.float32)
    units = math.prod(values.shape[1:]) if values.shape[1:].is_fully_defined() else -1
    return tf.reshape(values, [-1, units]) if units != 0 else values


def no_totals() -> tf.Tensor:
    """The sums of a report that has none."""
    return tf.zeros([0])


def _are_probabilities(outputs: tf.Tensor) -> tf.Tensor:
    return tf.reduce_all((outputs >= 0) & (outputs <= 1), axis=-1, keepdims=True)
