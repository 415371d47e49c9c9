"""What a model's loss wants its labels to be, and how right its outputs are."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import keras
import tensorflow as tf

SPARSE = "sparse"
ONE_HOT = "one-hot"
BINARY = "binary"


@dataclass(frozen=True, slots=True)
class LabelEncoding:
    """The form of labels that a model learns from.

    Attributes:
        form: ``sparse`` (int32 ``[batch]``), ``one-hot`` (float32 ``[batch, classes]``) or ``binary``
            (float32 ``[batch, 1]``).
        classes: Number of classes.
        threshold: Output above which a binary model says 1: 0.5 for a probability, 0 for a logit.
        logits: Whether the loss takes outputs for logits.
    """

    form: str
    classes: int
    threshold: float = 0.5
    logits: bool = False

    def encode(self, labels: tf.Tensor) -> tf.Tensor:
        """Bring sparse labels, int32 ``[batch]``, to this form."""
        if self.form == ONE_HOT:
            return tf.one_hot(labels, self.classes)
        if self.form == BINARY:
            return tf.cast(labels[:, tf.newaxis], tf.float32)
        return labels

    def correct(self, labels: tf.Tensor, outputs: tf.Tensor) -> tf.Tensor:
        """Tell for each example whether the model is right.

        Args:
            labels: Sparse labels, int32 ``[batch]``.
            outputs: The model's, ``[batch, units]``.

        Returns:
            float32 ``[batch]`` of ones and zeros.
        """
        return tf.cast(tf.equal(tf.cast(self.said(outputs), labels.dtype), labels), tf.float32)

    def said(self, outputs: tf.Tensor) -> tf.Tensor:
        """The class that the model takes each example for, int32 ``[batch]``."""
        if self.form == BINARY:
            return tf.cast(outputs[:, 0] > self.threshold, tf.int32)
        return tf.argmax(outputs, axis=-1, output_type=tf.int32)

    def probabilities(self, outputs: tf.Tensor) -> tf.Tensor:
        """What the model gives to each class, float32 ``[batch, classes]``.

        Outputs that are no probabilities, as of a loss of the user's own, are taken for logits.
        """
        outputs = tf.cast(outputs, tf.float32)
        if self.form == BINARY:
            one = tf.sigmoid(outputs) if self.logits else outputs
            return tf.concat([1 - one, one], axis=-1)
        scaled = tf.nn.softmax(outputs)
        if self.logits:
            return scaled
        fits = tf.reduce_all((outputs >= 0) & (outputs <= 1), axis=-1, keepdims=True)
        return tf.where(fits, outputs, scaled)

    def judged(self, labels: tf.Tensor, outputs: tf.Tensor) -> tf.Tensor:
        """What there is to note of each example, float32 ``[batch, 3]``.

        The class that it is taken for, the probability of that one, and of its own.

        Args:
            labels: Sparse labels, int32 ``[batch]``.
            outputs: The model's, ``[batch, units]``.
        """
        said, probabilities = self.said(outputs), self.probabilities(outputs)
        chosen = [tf.gather(probabilities, classes, axis=1, batch_dims=1) for classes in (said, labels)]
        return tf.stack([tf.cast(said, tf.float32), *chosen], axis=1)


def choose_loss(units: int, classes: int, *, logits: bool) -> keras.losses.Loss:
    """The loss for an uncompiled classifier.

    Args:
        units: Numbers in its output for an example.
        classes: Classes in the data.
        logits: Whether the output is logits, not probabilities.
    """
    if units == 1 and classes == 2:
        return keras.losses.BinaryCrossentropy(from_logits=logits)
    return keras.losses.SparseCategoricalCrossentropy(from_logits=logits)


Loss: TypeAlias = str | Callable[..., Any] | keras.losses.Loss | list["Loss"] | dict[str, "Loss"] | None
"""A loss as it may be given to ``compile``, for one output; ``None`` for a model that brings its own."""


def labels_for(loss: Loss, units: int, classes: int) -> LabelEncoding:
    """Tell from a loss which form of labels it wants.

    A loss of the user's own gets sparse labels, as data mostly has them, unless the output is one number.

    Args:
        loss: The model's.
        units: Numbers in the model's output for an example.
        classes: Classes in the data.
    """
    loss = only(loss)
    logits = bool(getattr(loss, "from_logits", False)) or bool(
        getattr(loss, "_fn_kwargs", {}).get("from_logits", False)
    )
    if loss is None or "sparse" in loss_name(loss):
        return LabelEncoding(SPARSE, classes, logits=logits)
    if units == 1 and classes == 2:
        return LabelEncoding(BINARY, classes, threshold=0.0 if logits else 0.5, logits=logits)
    if _is_keras_own(loss):
        return LabelEncoding(ONE_HOT, max(units, classes), logits=logits)
    return LabelEncoding(SPARSE, classes)


def loss_name(loss: Loss) -> str:
    """A loss's name in Keras' snake case."""
    loss = only(loss)
    if loss is None:
        return "the model's own"
    if isinstance(loss, str):
        return loss
    return str(getattr(loss, "name", None) or getattr(loss, "__name__", None) or type(loss).__name__)


def only(loss: Loss) -> Loss:
    """The loss of the only output, which may be given in a list, or in a mapping by its name."""
    if isinstance(loss, dict):
        loss = list(loss.values())
    return only(loss[0]) if isinstance(loss, list) and len(loss) == 1 else loss


def _is_keras_own(loss: Loss) -> bool:
    function = getattr(loss, "fn", loss)  # a user's function may be wrapped in Keras' class
    return isinstance(loss, str) or str(getattr(function, "__module__", "")).startswith("keras.")
