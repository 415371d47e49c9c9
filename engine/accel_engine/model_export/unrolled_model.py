"""Unrolls recurrent layers, whose loops LiteRT cannot run."""

from typing import Any

import keras

from accel_engine.errors import ModelError
from accel_engine.private_names.keras_names import all_layers
from accel_engine.user_code import reason

MAX_STEPS = 256
"""Steps that are unrolled at most; a graph of more takes minutes to convert."""


def is_recurrent(model: keras.Model) -> bool:
    """Whether a model has recurrent layers."""
    return any(isinstance(layer, keras.layers.RNN) for layer in all_layers(model))


def unrolled(model: keras.Model) -> keras.Model:
    """A copy of a model with the same weights, whose recurrent layers are unrolled.

    Raises:
        ModelError: Its recurrent layers cannot be unrolled; why.
    """
    for layer in all_layers(model):
        steps = _steps(layer) if isinstance(layer, keras.layers.RNN) else 0
        if steps is None or steps > MAX_STEPS:
            count = "a number of steps that the data does not fix" if steps is None else f"{steps:,} steps"
            raise ModelError(
                f"LiteRT runs recurrent layers unrolled, over at most {MAX_STEPS} steps: {layer.name} takes {count}"
            )
    try:
        copy = keras.models.clone_model(model, clone_function=_unrolled_layer, recursive=True)
        copy.set_weights(model.get_weights())
    except Exception as error:  # of several kinds, from layers of the user's too
        raise ModelError(
            f"LiteRT runs recurrent layers only unrolled, and the model cannot be copied: {reason(error)}"
        ) from error
    return copy


def _unrolled_layer(layer: keras.Layer) -> keras.Layer:
    config = layer.get_config()
    if isinstance(layer, keras.layers.RNN):
        config["unroll"] = True
    elif isinstance(layer, keras.layers.Bidirectional):
        for part in ("layer", "backward_layer"):
            if config.get(part):
                config[part]["config"]["unroll"] = True
    return type(layer).from_config(config)


def _steps(layer: Any) -> int | None:
    """Steps of a recurrent layer's inputs; ``None`` if they are not fixed."""
    shapes = getattr(layer, "_build_shapes_dict", None) or {}
    shape = next(iter(shapes.values()), None)
    return shape[1] if shape else None
