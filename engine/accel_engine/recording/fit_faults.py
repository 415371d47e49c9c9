"""Finds what Keras does otherwise than a call of ``fit`` says, from the arguments; it changes and keeps nothing."""

import inspect
import math
import reprlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import FunctionType
from typing import Any, SupportsFloat

import keras

from accel_engine.events import ARGUMENT_LOST, CLASS_WEIGHT_IGNORED, EMPTY_BATCH
from accel_engine.keras_support.losses import is_keras_defined
from accel_engine.private_names.keras_names import constructor_arguments
from accel_engine.words import numbers

LISTED = 4
"""The most keys, and the most arguments of layers, that are named."""

UNKNOWN = -2
"""``tf.data.UNKNOWN_CARDINALITY``."""


def faults_of(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """The messages on a call of ``fit``.

    Args:
        arguments: The arguments by name, with the model as ``self``.
    """
    found = [*_ignored_weights(arguments), *_empty_batches(arguments)]
    with suppress(Exception):  # classes of the user's own may be anything
        found += list(dict.fromkeys(_lost_arguments(arguments["self"])))[:LISTED]
    return tuple(found)


def _ignored_weights(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Keras looks the weight up by the integer class, and takes 1 for a class without one (keras-team/keras#23220)."""
    weights = arguments.get("class_weight")
    if not isinstance(weights, Mapping):
        return
    texts = [key for key in weights if not isinstance(key, SupportsFloat)]
    classes = _classes(arguments["self"])
    numeric = {key: float(key) for key in weights if isinstance(key, SupportsFloat)}
    beyond = [key for key, value in numeric.items() if value % 1 or not 0 <= value < (classes or math.inf)]
    if texts:
        named = numbers.listed([repr(key) for key in texts[:LISTED]])
        yield f"{CLASS_WEIGHT_IGNORED}: {named}: Keras compares them with integer classes, and takes 1 for the others"
    if beyond:
        named = numbers.listed([repr(key) for key in beyond[:LISTED]])
        has = f"the model has {classes} classes" if classes else "classes are integers"
        yield f"{CLASS_WEIGHT_IGNORED}: {named}: {has}, counted from 0"


def _classes(model: Any) -> int | None:
    """The number of classes of a model with one output, as far as its shape tells."""
    shape = getattr(model, "output_shape", None) if getattr(model, "built", False) else None
    if not isinstance(shape, tuple) or not shape or not isinstance(shape[-1], int):
        return None
    return max(2, shape[-1])


def _empty_batches(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Keras 3.15 takes a step more at the end of a dataset of unknown length with batches of fixed size.

    The step has no examples, but counts in the means of an epoch and of a validation (keras-team/keras#23084).
    """
    model = arguments["self"]
    if not keras.__version__.startswith("3.15.") or keras.backend.backend() != "tensorflow":
        return
    if model.run_eagerly or model.jit_compile is True or model.steps_per_execution != 1:
        return
    for name, steps, means in (
        ("x", "steps_per_epoch", "the means of each epoch are"),
        ("validation_data", "validation_steps", "the means of each validation are"),
    ):
        if arguments.get(steps) is None and (size := _fixed_size(arguments.get(name))):
            yield (
                f"{EMPTY_BATCH}: {name} does not tell how many batches it has, each of {size}: {means} too low, as an "
                "empty batch counts"
            )


def _fixed_size(data: Any) -> int | None:
    """The batch size of a ``tf.data`` dataset of unknown length whose inputs have a fixed one; ``None`` for others."""
    if not type(data).__module__.startswith("tensorflow.") or not hasattr(data, "cardinality"):
        return None
    if int(data.cardinality()) != UNKNOWN:
        return None
    spec = data.element_spec
    inputs = keras.tree.flatten(spec[0] if isinstance(spec, tuple) else spec)
    sizes = [each.shape[0] if each.shape.rank else None for each in inputs]
    return sizes[0] if sizes and all(sizes) else None


def _lost_arguments(model: Any) -> Iterator[str]:
    """A layer loads with the default of an argument that its ``get_config`` lacks.

    Nothing of the user's is called: the code of ``get_config`` is only searched for the names of arguments, and is
    taken to have all of them if it does anything but add them to a dictionary.
    """
    for layer in _layers_of_own(model):
        given = constructor_arguments(layer)
        for name, parameter in inspect.signature(type(layer).__init__).parameters.items():
            value, default = given.get(name), parameter.default
            if name not in given or not {type(value), type(default)} <= _COMPARED:
                continue
            if value != default and not _may_have(type(layer), name):
                has = f"{type(layer).__name__} has {name}={reprlib.repr(value)}, which a saved model does not have"
                yield f"{ARGUMENT_LOST}: {has}: it loads with {reprlib.repr(default)}"


_COMPARED = {bool, int, float, str, type(None)}
"""Types of arguments that are compared with their defaults; comparing others may be the user's code."""

_ADDING = {
    *("super", "get_config", "update", "dict", "int", "float", "str", "bool", "list", "tuple"),
    *("keras", "layers", "activations", "initializers", "regularizers", "constraints", "losses", "saving"),
    *("serialize", "serialize_keras_object"),
}
"""Names in the code of a ``get_config`` that only adds to a dictionary, besides the names of arguments."""


def _layers_of_own(model: Any) -> Iterator[Any]:
    """The layers of the user's classes that a saved model builds from their configurations."""
    if not is_keras_defined(type(model)):
        yield model  # builds its layers itself
    elif isinstance(model, keras.Model):
        for layer in model.layers:
            yield from _layers_of_own(layer)


def _may_have(kind: Any, name: str) -> bool:
    """Whether the configuration of a class of layers may have an argument of its constructor."""
    bases: tuple[Any, ...] = kind.__mro__[: kind.__mro__.index(keras.Layer) + 1]
    own = [base for base in bases if not is_keras_defined(base)]
    of_keras = [base for base in bases if is_keras_defined(base)]
    if kind.get_config in (keras.Layer.get_config, keras.Model.get_config):  # which give all arguments
        return True
    if any("from_config" in vars(base) for base in own) or any("__new__" in vars(base) for base in own):
        return True
    if any(name in inspect.signature(base.__init__).parameters for base in of_keras if "__init__" in vars(base)):
        return True
    arguments = {each for base in own for each in inspect.signature(base.__init__).parameters}
    return any(
        not _only_adds(method, arguments) or name in _texts(method.__code__.co_consts)
        for base in own
        if (method := vars(base).get("get_config"))
    )


def _only_adds(method: Any, arguments: set[str]) -> bool:
    """Whether a ``get_config`` only adds arguments to a dictionary, as far as its names tell."""
    if type(method) is not FunctionType:
        return False
    names = {each.lstrip("_") for each in method.__code__.co_names}
    return names <= _ADDING | arguments and not any(inspect.iscode(each) for each in method.__code__.co_consts)


def _texts(constants: Any) -> Iterator[str]:
    """The texts in the constants of a function."""
    for each in constants:
        if isinstance(each, str):
            yield each
        elif isinstance(each, tuple):
            yield from _texts(each)
