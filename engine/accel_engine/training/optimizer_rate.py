"""The learning rate that a step's update uses."""

from collections.abc import Iterator, Mapping

import keras
import tensorflow as tf


def optimizer_of_steps(model: keras.Model, *, own_train_step: bool) -> keras.Optimizer | None:
    """The optimizer that takes the steps of a compiled model.

    Args:
        model: The model.
        own_train_step: Whether it has a ``train_step`` of its own.

    Returns:
        ``None`` where it is not known: a GAN's ``train_step`` uses optimizers that the model has beside
        ``model.optimizer``, which Keras makes even where nothing uses it.
    """
    compiled = model.optimizer
    others = (each for each in _optimizers(vars(model)) if each is not compiled)
    return None if own_train_step and any(others) else compiled


def _optimizers(value: object) -> Iterator[keras.Optimizer]:
    """The optimizers among a model's attributes, those in lists and dictionaries too."""
    if isinstance(value, keras.Optimizer):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _optimizers(each)


def read(optimizer: keras.Optimizer) -> tf.Tensor:
    """The rate of the next update, a float32 scalar; in a graph, that of the update which follows."""
    return tf.cast(tf.convert_to_tensor(optimizer.learning_rate), tf.float32)


def is_constant(optimizer: keras.Optimizer) -> bool:
    """Whether the rate stays as it is until somebody sets another."""
    return isinstance(optimizer.learning_rate, keras.Variable)


def schedule_name(optimizer: keras.Optimizer) -> str:
    """The class of the schedule that the rate follows; empty where it follows none."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    schedule = getattr(inner, "_learning_rate", None)
    return type(schedule).__name__ if isinstance(schedule, keras.optimizers.schedules.LearningRateSchedule) else ""
