"""What can be told of a Keras model by looking at it: how it wants its data and what it puts out."""

from collections.abc import Iterator
from typing import Any

import keras
import tensorflow as tf
from keras import layers

_SHAPING = (
    layers.InputLayer,
    layers.Reshape,
    layers.Flatten,
    layers.Permute,
    layers.Resizing,
    layers.CenterCrop,
    layers.ZeroPadding2D,
    layers.RandomCrop,
    layers.RandomFlip,
    layers.RandomRotation,
    layers.RandomTranslation,
    layers.RandomZoom,
)
"""Layers that may stand before the first computation and leave the range of numbers as it is."""

_PREPROCESSING = (
    layers.Rescaling,
    layers.Normalization,
    layers.Lambda,
    layers.Embedding,
    layers.Discretization,
    layers.CategoryEncoding,
    layers.Hashing,
    layers.IntegerLookup,
)
"""Layers that want raw numbers; a ``Lambda`` at the front is nearly always a scaling."""

_ARITHMETIC = {"TrueDivide", "Divide", "Multiply", "Subtract", "Add"}
"""Operations that a scaling written as an expression, such as ``x / 127.5 - 1``, begins with."""

_PASSING = {"Identity", "Cast", "Reshape"}
"""TensorFlow operations that hand on the numbers they are given."""


def overrides_train_step(model: keras.Model) -> bool:
    """Whether the model brings a ``train_step`` of its own."""
    return "train_step" in vars(model) or type(model).train_step is not keras.Model.train_step


def preprocessing(model: keras.Model, *, declared: bool = True) -> str:
    """The class of the layer with which a model takes raw numbers, so that they must not be scaled before; or nothing.

    Seen are scaling layers and arithmetic before the first layer that learns; of a subclassed model,
    whose order is in its code, its scaling layers only.

    Args:
        model: Built.
        declared: Whether the data's source declares what its numbers are. Else they may be tokens as well, so that an
            ``Embedding`` anywhere in the model counts, within layers of the user's own too.
    """
    if not declared and any(isinstance(layer, layers.Embedding) for layer in model._flatten_layers()):  # noqa: SLF001
        return "Embedding"
    if not isinstance(model, keras.Sequential) and not hasattr(model, "operations"):
        own = (layer for layer in _operations(model) if isinstance(layer, layers.Rescaling | layers.Normalization))
        return next((type(layer).__name__ for layer in own), "")
    for operation in _operations(model):
        if isinstance(operation, _PREPROCESSING) or type(operation).__name__ in _ARITHMETIC:
            return type(operation).__name__
        if not isinstance(operation, _SHAPING):
            break
    return ""


def output_units(model: keras.Model, input_shape: tuple[int, ...]) -> int:
    """Count the numbers that a model puts out for an example.

    Args:
        model: A built model.
        input_shape: Shape of one example, without the batch.

    Returns:
        0 when the output is not one tensor ``[batch, units]``.
    """
    output = model.compute_output_spec(keras.KerasTensor((None, *input_shape)))
    if isinstance(output, keras.KerasTensor) and len(output.shape) == 2:
        return int(output.shape[1] or 0)
    return 0


def returns_logits(model: keras.Model) -> bool:
    """Whether the outputs of a built model are logits, not probabilities from a softmax or sigmoid."""
    last = list(_operations(model))[-1]
    name = _activation(last) or _traced_activation(model)
    return name.lower() not in ("softmax", "sigmoid")


def _operations(model: keras.Model) -> Iterator[Any]:
    """A model's layers and other operations in order, with models inside of it taken apart."""
    for operation in getattr(model, "operations", model.layers):
        if isinstance(operation, keras.Model):
            yield from _operations(operation)
        else:
            yield operation


def _activation(operation: Any) -> str:
    """The name of the function that an operation ends in; empty where that cannot be seen."""
    if activation := getattr(operation, "activation", None):
        return str(getattr(activation, "__name__", ""))
    return type(operation).__name__ if type(operation).__name__ in ("Softmax", "Sigmoid") else ""


def _traced_activation(model: keras.Model) -> str:
    """The TensorFlow operation that a model ends in, seen in its graph."""
    inputs = getattr(model, "inputs", None)
    shape = inputs[0].shape if inputs else model.get_build_config()["input_shape"]
    graph = tf.function(lambda x: model(x, training=False), autograph=False)
    operation = graph.get_concrete_function(tf.TensorSpec(shape)).outputs[0].op
    while operation.type in _PASSING:
        operation = operation.inputs[0].op
    return str(operation.type)
