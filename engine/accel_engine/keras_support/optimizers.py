"""Finds a model's optimizers, and reads and sets their learning rates."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import keras

from accel_engine.errors import format_error
from accel_engine.private_names.keras_names import schedule_of


def optimizers_by_attribute(model: Any) -> dict[str, Any]:
    """Each optimizer once, by its first attribute; the one that the model was compiled with, by ``optimizer``.

    Lists and dictionaries, which may be very large, are not searched.
    """
    found: dict[str, Any] = {}
    for name, each in sorted(vars(model).items(), key=lambda attribute: attribute[0] != "optimizer"):
        if isinstance(each, keras.optimizers.Optimizer):
            optimizer = inner_optimizer(each)
            if not any(optimizer is other for other in found.values()):
                found[name] = optimizer
    return found


def every_optimizer(model: Any) -> list[Any]:
    """Each optimizer of a model once, also those in lists and dictionaries, without loss scaling around them."""
    found = [getattr(model, "optimizer", None), *_optimizers(vars(model))]
    inner = [inner_optimizer(each) for each in found if each is not None]
    return list({id(each): each for each in inner}.values())


def optimizer_of_steps(model: keras.Model, *, custom_step: bool) -> keras.Optimizer | None:
    """The optimizer that updates a compiled model.

    Args:
        model: The model.
        custom_step: Whether it has a custom ``train_step``.

    Returns:
        ``None`` where it is ambiguous: a GAN's ``train_step`` uses optimizers other than ``model.optimizer``, which
        Keras creates even if it is unused.
    """
    compiled = getattr(model, "optimizer", None)  # missing before a model is compiled
    others = (each for each in _optimizers(vars(model)) if each is not compiled)
    return None if custom_step and any(others) else compiled


def _optimizers(value: object) -> Iterator[keras.Optimizer]:
    """The optimizers among a model's attributes, including those in lists and dictionaries."""
    if isinstance(value, keras.Optimizer):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _optimizers(each)


def inner_optimizer(optimizer: Any) -> Any:
    """The optimizer inside a loss-scaling one."""
    return getattr(optimizer, "inner_optimizer", optimizer)


def optimizer_name(optimizer: Any) -> str:
    """The class name of an optimizer, without a ``LossScaleOptimizer`` around it."""
    return type(inner_optimizer(optimizer)).__name__


def schedule_name(optimizer: Any) -> str:
    """The description of the learning-rate schedule, or its class name; empty where there is none."""
    schedule = schedule_of(inner_optimizer(optimizer))
    return getattr(schedule, "description", type(schedule).__name__) if schedule else ""


def has_constant_rate(optimizer: keras.Optimizer) -> bool:
    """Whether the learning rate is a variable rather than a schedule."""
    return isinstance(optimizer.learning_rate, keras.Variable)


def read_rate(optimizer: keras.Optimizer) -> Any:
    """The learning rate of the next update, a float32 scalar tensor."""
    return keras.ops.cast(keras.ops.convert_to_tensor(optimizer.learning_rate), "float32")


def set_rate(optimizer: Any, rate: float) -> str:
    """Set the learning rate; returns why it cannot be set, or nothing."""
    if not 0 < rate < math.inf:
        return "the learning rate must be greater than 0"
    try:
        optimizer.learning_rate = rate
    except Exception as error:  # noqa: BLE001 (a user's optimizer may raise anything)
        return f"the optimizer does not accept it: {format_error(error)}"
    return ""
