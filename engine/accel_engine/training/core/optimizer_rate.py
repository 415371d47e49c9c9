"""Reads an optimizer's learning rate."""

from collections.abc import Iterator, Mapping

import keras
import tensorflow as tf

from accel_engine.private_names.keras_names import schedule_of


def optimizer_of_steps(model: keras.Model, *, custom_step: bool) -> keras.Optimizer | None:
    """The optimizer that updates a compiled model.

    Args:
        model: The model.
        custom_step: Whether it has a custom ``train_step``.

    Returns:
        ``None`` where it is ambiguous: a GAN's ``train_step`` uses optimizers other than ``model.optimizer``, which
        Keras creates even if it is unused.
    """
    compiled = model.optimizer
    others = (each for each in _optimizers(vars(model)) if each is not compiled)
    return None if custom_step and any(others) else compiled


def _optimizers(value: object) -> Iterator[keras.Optimizer]:
    """The optimizers among a model's attributes, including those in lists and dictionaries."""
    if isinstance(value, keras.Optimizer):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _optimizers(each)


def read(optimizer: keras.Optimizer) -> tf.Tensor:
    """The learning rate of the next update, a float32 scalar."""
    return tf.cast(tf.convert_to_tensor(optimizer.learning_rate), tf.float32)


def is_constant(optimizer: keras.Optimizer) -> bool:
    """Whether the learning rate is a variable rather than a schedule."""
    return isinstance(optimizer.learning_rate, keras.Variable)


def schedule_name(optimizer: keras.Optimizer) -> str:
    """The class name of the learning-rate schedule; empty where there is none."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    schedule = schedule_of(inner)
    return type(schedule).__name__ if schedule else ""
