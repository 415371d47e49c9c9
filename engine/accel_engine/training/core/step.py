"""One training step of a replica, from raw examples and sparse labels to the step's metrics."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from accel_engine.devices.host_probe import processors
from accel_engine.errors import ModelError
from accel_engine.keras_support.optimizers import read_rate
from accel_engine.run.series_names import LEARNING_RATE
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.micro_batches import GradientFunction, accumulate_gradients

Step = Callable[[tf.Tensor, tf.Tensor], dict[str, tf.Tensor]]


def step_of(assembly: Assembly, micro_batches: int) -> Step:
    """A function that runs one optimizer update on one replica, from raw examples and sparse labels to metrics."""
    model, labels = assembly.model, assembly.label_encoding
    if assembly.has_custom_train_step:
        return _custom_step(assembly)
    replicas = assembly.strategy.num_replicas_in_sync
    names = ("loss", "accuracy") if assembly.is_classifier else ("loss",)

    def compute_gradients(x: tf.Tensor, y: tf.Tensor) -> tuple[list[Any], list[tf.Tensor]]:
        inputs = scaled(x, assembly.scale)
        targets = labels.encode(y)
        with tf.GradientTape() as tape:
            outputs = model(inputs, training=True)
            # Keras divides it, regularization included, by the number of replicas, over which gradients are summed.
            loss = model.compute_loss(x=inputs, y=targets, y_pred=outputs, training=True)
            objective = model.optimizer.scale_loss(loss)
        measured = [tf.cast(mean_loss(loss) * replicas, tf.float32)]
        if assembly.is_classifier:
            measured.append(tf.reduce_mean(labels.correct(y, outputs)))
        return tape.gradient(objective, model.trainable_variables), measured

    compute_all: GradientFunction = compute_gradients
    if micro_batches > 1:
        parallel = 1 if assembly.plan.micro_batches else processors()  # the plan's are to save memory
        compute_all = accumulate_gradients(
            compute_gradients, model.trainable_variables, len(names), micro_batches, parallel_iterations=parallel
        )

    def step(x: tf.Tensor, y: tf.Tensor) -> dict[str, tf.Tensor]:
        gradients, measured = compute_all(x, y)
        logs = dict(zip(names, measured, strict=True))
        if assembly.plan.gradient_norm == "on":  # before the optimizer updates the loss scale
            logs["gradient_norm"] = global_norm(gradients, model.optimizer.scale_loss(tf.constant(1.0)))
        model.optimizer.apply(gradients, model.trainable_variables)
        return logs

    return step


def with_rate(step: Step, optimizer: keras.Optimizer) -> Step:
    """A step that also returns the learning rate of its update, unless it already does."""

    def step_with_rate(x: tf.Tensor, y: tf.Tensor) -> dict[str, tf.Tensor]:
        rate = read_rate(optimizer)  # before the update, which advances the schedule
        logs = step(x, y)
        return {**logs, LEARNING_RATE: logs.get(LEARNING_RATE, rate)}

    return step_with_rate


def _custom_step(assembly: Assembly) -> Step:
    """A custom ``train_step``, with metrics reset so that they are this step's, not running means."""
    model, labels, names = assembly.model, assembly.label_encoding, assembly.names

    def step(x: tf.Tensor, y: tf.Tensor) -> dict[str, tf.Tensor]:
        for metric in model.metrics:
            metric.reset_state()
        logs = model.train_step((scaled(x, assembly.scale), labels.encode(y)))
        scalars = names.scalars(keras.tree.map_structure(tf.convert_to_tensor, logs))
        if "loss" not in scalars:
            raise ModelError(f"the model's train_step returns {', '.join(scalars) or 'nothing'} but no loss")
        return scalars

    return step


def global_norm(gradients: Sequence[tf.Tensor | tf.IndexedSlices | None], scale: tf.Tensor) -> tf.Tensor:
    """The L2 norm of all gradients, summed over replicas as the optimizer does, before clipping.

    Args:
        gradients: Those of the replica in whose context this is called.
        scale: The loss scale, which keeps float16 gradients from underflowing.

    Returns:
        float32 scalar, the same on all replicas; not finite where a float16 gradient overflowed.
    """
    # Rows of an embedding that occur more than once in a batch are summed first.
    dense = [tf.cast(tf.convert_to_tensor(gradient), tf.float32) for gradient in gradients if gradient is not None]
    context = tf.distribute.get_replica_context()
    if context.num_replicas_in_sync > 1:
        dense = context.all_reduce(tf.distribute.ReduceOp.SUM, dense)
    return tf.linalg.global_norm(dense) / tf.cast(scale, tf.float32)


def mean_loss(loss: tf.Tensor) -> tf.Tensor:
    """A loss as a scalar: the mean of one without a reduction, as in ``fit``."""
    return tf.reduce_mean(loss) if loss.shape.rank else loss


def scaled(x: tf.Tensor, scale: float) -> tf.Tensor:
    """Convert raw examples to float32 and multiply them by a factor."""
    x = tf.cast(x, tf.float32)
    return x * scale if scale != 1.0 else x
