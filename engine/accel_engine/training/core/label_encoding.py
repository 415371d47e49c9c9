"""Encodes labels as a model's loss expects them, and evaluates its outputs against them."""

from dataclasses import dataclass

import keras
import tensorflow as tf

from accel_engine.keras_support.losses import Loss, is_keras_defined, loss_name, single_loss
from accel_engine.private_names.keras_names import loss_takes_logits

SPARSE = "sparse"
ONE_HOT = "one-hot"
BINARY = "binary"


@dataclass(frozen=True, slots=True)
class LabelEncoding:
    """The form of labels that a model's loss expects.

    Attributes:
        form: ``sparse`` (int32 ``[batch]``), ``one-hot`` (float32 ``[batch, classes]``) or ``binary``
            (float32 ``[batch, 1]``).
        classes: Number of classes.
        threshold: Output above which a binary model predicts class 1: 0.5 for a probability, 0 for a logit.
        logits: Whether the outputs are logits.
    """

    form: str
    classes: int
    threshold: float = 0.5
    logits: bool = False

    def encode(self, labels: tf.Tensor) -> tf.Tensor:
        """Encode sparse labels, int32 ``[batch]``."""
        if self.form == ONE_HOT:
            return tf.one_hot(labels, self.classes)
        if self.form == BINARY:
            return tf.cast(labels[:, tf.newaxis], tf.float32)
        return labels

    def correct(self, labels: tf.Tensor, outputs: tf.Tensor) -> tf.Tensor:
        """1 for each correct prediction, 0 for the others.

        Args:
            labels: Sparse labels, int32 ``[batch]``.
            outputs: The model's outputs, ``[batch, units]``.

        Returns:
            float32 ``[batch]``.
        """
        return tf.cast(tf.equal(tf.cast(self.predicted_classes(outputs), labels.dtype), labels), tf.float32)

    def predicted_classes(self, outputs: tf.Tensor) -> tf.Tensor:
        """The predicted class of each example, int32 ``[batch]``."""
        if self.form == BINARY:
            return tf.cast(outputs[:, 0] > self.threshold, tf.int32)
        return tf.argmax(outputs, axis=-1, output_type=tf.int32)

    def probabilities(self, outputs: tf.Tensor) -> tf.Tensor:
        """The predicted probability of each class, float32 ``[batch, classes]``.

        Outputs outside of [0, 1], as with a custom loss, are treated as logits.
        """
        outputs = tf.cast(outputs, tf.float32)
        if self.form == BINARY:
            positive = tf.sigmoid(outputs) if self.logits else outputs
            return tf.concat([1 - positive, positive], axis=-1)
        scaled = tf.nn.softmax(outputs)
        if self.logits:
            return scaled
        fits = tf.reduce_all((outputs >= 0) & (outputs <= 1), axis=-1, keepdims=True)
        return tf.where(fits, outputs, scaled)

    def predictions(self, labels: tf.Tensor, outputs: tf.Tensor) -> tf.Tensor:
        """The predicted class, its probability and that of the true class, float32 ``[batch, 3]``.

        Args:
            labels: Sparse labels, int32 ``[batch]``.
            outputs: The model's, ``[batch, units]``.
        """
        predicted, probabilities = self.predicted_classes(outputs), self.probabilities(outputs)
        chosen = [tf.gather(probabilities, classes, axis=1, batch_dims=1) for classes in (predicted, labels)]
        return tf.stack([tf.cast(predicted, tf.float32), *chosen], axis=1)


def choose_loss(units: int, classes: int, *, logits: bool) -> keras.losses.Loss:
    """Choose the loss for an uncompiled classifier.

    Args:
        units: Output units.
        classes: Number of classes.
        logits: Whether the outputs are logits rather than probabilities.
    """
    if units == 1 and classes == 2:
        return keras.losses.BinaryCrossentropy(from_logits=logits)
    return keras.losses.SparseCategoricalCrossentropy(from_logits=logits)


def encoding_for(loss: Loss, units: int, classes: int) -> LabelEncoding:
    """The form of labels that a loss expects.

    A custom loss gets sparse labels, unless the model has a single output unit.

    Args:
        loss: The model's loss.
        units: Output units.
        classes: Number of classes.
    """
    loss = single_loss(loss)
    logits = loss_takes_logits(loss)
    if loss is None or "sparse" in loss_name(loss):
        return LabelEncoding(SPARSE, classes, logits=logits)
    if units == 1 and classes == 2:
        return LabelEncoding(BINARY, classes, threshold=0.0 if logits else 0.5, logits=logits)
    # A custom function may be wrapped in a Keras class.
    if isinstance(loss, str) or is_keras_defined(getattr(loss, "fn", loss)):
        return LabelEncoding(ONE_HOT, max(units, classes), logits=logits)
    return LabelEncoding(SPARSE, classes)
