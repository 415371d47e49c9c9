"""Calls models of any kind."""

import inspect
from typing import Any

import keras


def call_model(model: keras.Model, inputs: Any, *, training: bool) -> Any:
    """Call a model as ``fit`` does: with ``training`` only if its ``call`` takes it."""
    parameters = inspect.signature(model.call).parameters.values()
    takes = any(each.name == "training" or each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)
    return model(inputs, training=training) if takes else model(inputs)
