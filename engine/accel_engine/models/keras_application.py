"""Builds the classifiers of ``keras.applications`` in the catalogue.

``keras_application.MobileNetV2(data)`` builds that model with random weights.
"""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import keras

from accel_engine.models.applications import APPLICATIONS
from accel_engine.models.data_description import DataDescription
from accel_engine.models.outputs import ACTIVATIONS, unit_layers


def build(name: str, data: DataDescription) -> keras.Model:
    """Build a model of ``keras.applications``.

    The activation is added here in float32, because under mixed precision Keras' own would be computed in 16 bits.

    Args:
        name: The name of the function in ``keras.applications``.
        data: Images ``[height, width, channels]``.

    Returns:
        An uncompiled model from images to what :func:`~accel_engine.models.outputs.output` returns.
    """
    application = getattr(keras.applications, name)
    own_scaling: dict[str, Any] = {}
    if "include_preprocessing" in inspect.signature(application).parameters:
        own_scaling["include_preprocessing"] = False
    model = application(
        weights=None, input_shape=data.shape, classes=data.output_size, classifier_activation=None, **own_scaling
    )
    x = _activation(data)(model.output)
    for layer in unit_layers(data):
        x = layer(x)
    return keras.Model(model.inputs, x, name=name)


def _activation(data: DataDescription) -> keras.Layer:
    """The layer after the classifier's."""
    kind = ACTIVATIONS.get(data.task, "softmax")
    if kind == "softmax":
        return keras.layers.Softmax(dtype="float32", name="probabilities")
    return keras.layers.Activation(kind, dtype="float32", name="numbers" if kind == "linear" else "probabilities")


def __getattr__(name: str) -> Callable[..., keras.Model]:
    """Return the builder of the model of this name."""
    if any(entry.name == name for entry in APPLICATIONS):
        return partial(build, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
