"""Inspects Keras models: preprocessing layers, output units and logits."""

from collections.abc import Iterator
from typing import Any

import keras
import tensorflow as tf
from keras import layers

from accel_engine.keras_support.model_structure import model_input
from accel_engine.private_names.keras_names import all_layers

_SHAPING = (
    layers.InputLayer,
    layers.Reshape,
    layers.Flatten,
    layers.Permute,
    layers.Resizing,
    layers.CenterCrop,
    layers.ZeroPadding2D,
    layers.Concatenate,
    layers.RandomCrop,
    layers.RandomFlip,
    layers.RandomRotation,
    layers.RandomTranslation,
    layers.RandomZoom,
)
"""Layers that may precede preprocessing and do not change the range of values."""

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
"""Layers that take raw values; a ``Lambda`` before other layers is nearly always a scaling."""

_ARITHMETIC = {"TrueDivide", "Divide", "Multiply", "Subtract", "Add"}
"""The first operation of a scaling written as an expression, such as ``x / 127.5 - 1``."""

_PASSING = {"Identity", "Cast", "Reshape"}
"""TensorFlow operations that pass on their input."""


def preprocessing(model: keras.Model, *, declared: bool = True) -> str:
    """The class name of a model's preprocessing layer, whose input must not be scaled; empty if there is none.

    Considers scaling layers and arithmetic before the first layer with weights; of a subclassed model, whose order of
    layers is unknown, only its scaling layers.

    Args:
        model: A built model.
        declared: Whether the data's source declares the meaning of its values. Otherwise they may be tokens, and any
            ``Embedding`` in the model counts, including those nested in custom layers.
    """
    if not declared and any(isinstance(layer, layers.Embedding) for layer in all_layers(model)):
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


def returns_logits(model: keras.Model) -> bool:
    """Whether a built model outputs logits rather than probabilities of a softmax or sigmoid."""
    last = list(_operations(model))[-1]
    name = _activation(last) or _traced_activation(model)
    return name.lower() not in ("softmax", "sigmoid")


def last_activation(model: keras.Model) -> str:
    """The name of the activation of a model's last layer, such as ``softmax``; empty if it has none."""
    return _activation(list(_operations(model))[-1]).lower()


def _operations(model: keras.Model) -> Iterator[Any]:
    """Yield a model's layers and other operations in order, also of nested models."""
    for operation in getattr(model, "operations", model.layers):
        if isinstance(operation, keras.Model):
            yield from _operations(operation)
        else:
            yield operation


def _activation(operation: Any) -> str:
    """The name of an operation's activation; empty if unknown."""
    if activation := getattr(operation, "activation", None):
        return str(getattr(activation, "__name__", ""))
    return type(operation).__name__ if type(operation).__name__ in ("Softmax", "Sigmoid") else ""


def _traced_activation(model: keras.Model) -> str:
    """The last TensorFlow operation of a model's traced graph."""
    given = model_input(model)
    spec = (
        tf.TensorSpec(model.get_build_config()["input_shape"])
        if given is None
        else keras.tree.map_structure(lambda tensor: tf.TensorSpec(tensor.shape, tensor.dtype), given)
    )
    graph = tf.function(lambda x: model(x, training=False), autograph=False)
    operation = graph.get_concrete_function(spec).outputs[0].op
    while operation.type in _PASSING:
        operation = operation.inputs[0].op
    return str(operation.type)
