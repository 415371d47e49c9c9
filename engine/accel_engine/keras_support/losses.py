"""Names losses, and tells Keras' own from custom ones."""

from collections.abc import Callable
from typing import Any, TypeAlias

import keras

Loss: TypeAlias = str | Callable[..., Any] | keras.losses.Loss | list["Loss"] | dict[str, "Loss"] | None
"""A loss as it may be given to ``compile``; ``None`` for a model that computes its own."""


def single_loss(loss: Loss) -> Loss:
    """The loss of a single output, which may be in a list or a dictionary."""
    if isinstance(loss, dict):
        loss = list(loss.values())
    return single_loss(loss[0]) if isinstance(loss, list) and len(loss) == 1 else loss


def loss_name(loss: Loss) -> str:
    """The name of a loss, in Keras' snake case; ``several`` for more than one."""
    loss = single_loss(loss)
    if loss is None or isinstance(loss, str):
        return loss or "the model's own"
    if isinstance(loss, list):
        return "several"
    return str(getattr(loss, "name", None) or getattr(loss, "__name__", None) or type(loss).__name__)


def is_keras_defined(thing: Any) -> bool:
    """Whether a function, or the class of an object, is defined by Keras."""
    return str(getattr(thing, "__module__", "")).startswith("keras.")


def is_of_keras(loss: Loss) -> bool:
    """Whether a loss is one of Keras', by name or not, rather than a custom one."""
    return isinstance(loss, str) or is_keras_defined(getattr(loss, "fn", loss))
