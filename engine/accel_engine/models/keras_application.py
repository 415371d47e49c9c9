"""Builds the classifiers of ``keras.applications`` in the catalogue.

``keras_application.MobileNetV2(input_shape=..., classes=...)`` builds that model with random weights.
"""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import keras

from accel_engine.models.applications import APPLICATIONS


def build(name: str, input_shape: tuple[int, ...], classes: int) -> keras.Model:
    """Build a classifier of ``keras.applications``.

    The softmax is added here in float32, because under mixed precision Keras' own would be computed in 16 bits.

    Args:
        name: The name of the function in ``keras.applications``.
        input_shape: ``(height, width, channels)``.
        classes: Number of classes.

    Returns:
        An uncompiled model from images to probabilities, float32 ``[batch, classes]``.
    """
    application = getattr(keras.applications, name)
    own_scaling: dict[str, Any] = {}
    if "include_preprocessing" in inspect.signature(application).parameters:
        own_scaling["include_preprocessing"] = False
    model = application(
        weights=None, input_shape=input_shape, classes=classes, classifier_activation=None, **own_scaling
    )
    probabilities = keras.layers.Softmax(dtype="float32", name="probabilities")(model.output)
    return keras.Model(model.inputs, probabilities, name=name)


def __getattr__(name: str) -> Callable[..., keras.Model]:
    """Return the builder of the model of this name."""
    if any(entry.name == name for entry in APPLICATIONS):
        return partial(build, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
