"""The output layers of the catalogue's models, which follow from the task."""

import math

import keras
from keras import layers

from accel_engine.models.data_description import DataDescription

ACTIVATIONS = {"regression": "linear", "multi-label": "sigmoid"}
"""The activation of the outputs by task; otherwise softmax."""


def output(x: keras.KerasTensor, data: DataDescription) -> keras.KerasTensor:
    """Add the output layers: probabilities of classes or labels, or numbers in the units of the targets.

    Args:
        x: Features, ``[batch, features]``.
        data: The data.

    Returns:
        float32 ``[batch, classes]``; for a regression in the shape of the targets.
    """
    for layer in output_layers(data):
        x = layer(x)
    return x


def output_layers(data: DataDescription) -> list[keras.Layer]:
    """The layers of :func:`output`."""
    activation = ACTIVATIONS.get(data.task, "softmax")
    return [layers.Dense(data.output_size, activation=activation, dtype="float32"), *unit_layers(data)]


def unit_layers(data: DataDescription) -> list[keras.Layer]:
    """Layers that convert a regression's outputs to the units and the shape of the targets.

    They are learned as differences from the mean in standard deviations, ``[batch, values]``.
    """
    if data.task != "regression":
        return []
    found = []
    if data.target_mean:
        mean, variance = list(data.target_mean), list(data.target_variance)
        found.append(layers.Normalization(mean=mean, variance=variance, invert=True, dtype="float32"))
    if len(data.target_shape) > 1:
        found.append(layers.Reshape(data.target_shape))
    return found


def standardized_inputs(x: keras.KerasTensor, data: DataDescription) -> keras.KerasTensor:
    """Standardise inputs by moving averages, in layer ``standardized_inputs``; not tables, series and images."""
    if data.kind in ("table", "series", "images"):
        return x
    return layers.BatchNormalization(momentum=0.9, center=False, scale=False, name="standardized_inputs")(x)


def flat_size(data: DataDescription) -> int:
    """Number of values of an example."""
    return math.prod(side or 0 for side in data.shape or ())
