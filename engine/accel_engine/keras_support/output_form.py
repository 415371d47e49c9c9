"""What form the output of a model has, and what its loss takes; what cannot be found is unknown."""

from typing import Any

import keras

from accel_engine.keras_support.losses import is_of_keras, loss_name, single_loss
from accel_engine.private_names.keras_names import loss_takes_logits

_PASSING = (keras.layers.Reshape, keras.layers.Flatten, keras.layers.Identity)
"""Layers that give what they get."""


def output_activation(model: Any) -> str:
    """Keras' name of the activation of a model's single output, such as ``softmax`` or ``linear``.

    Empty for several outputs, and where it is unknown: in a subclassed model, whose layers have no order, and where a
    function of tensors comes last.
    """
    if not isinstance(model, keras.Sequential) and len(getattr(model, "outputs", None) or ()) != 1:
        return ""
    for operation in reversed(getattr(model, "operations", None) or model.layers):
        if isinstance(operation, keras.Model):
            return output_activation(operation)
        activation = getattr(operation, "activation", None)
        name = str(getattr(activation, "__name__", "")) if activation is not None else _own_name(operation)
        passes = isinstance(operation, _PASSING) or (
            isinstance(operation, keras.layers.Activation) and name == "linear"  # as after a softmax in float16
        )
        if not passes:
            return name
    return ""


def takes_logits(loss: Any) -> bool | None:
    """Whether a crossentropy of Keras takes logits; ``None`` for any other loss."""
    loss = single_loss(loss)
    if loss is None or isinstance(loss, list | dict) or not is_of_keras(loss) or "crossentropy" not in loss_name(loss):
        return None
    return loss_takes_logits(loss)


def logits_note(model: Any) -> str:
    """A warning on a compiled model whose crossentropy takes logits that it does not give; empty if it is right."""
    activation = output_activation(model)
    if activation not in ("softmax", "sigmoid") or not takes_logits(model.loss):
        return ""
    name = loss_name(model.loss)
    return f"{name} has from_logits=True, but the model ends with a {activation}: leave out one of the two"


def _own_name(operation: Any) -> str:
    """The name of a layer that is an activation itself; empty for others."""
    name = type(operation).__name__
    return name.lower() if name in ("Softmax", "Sigmoid", "ReLU") else ""
