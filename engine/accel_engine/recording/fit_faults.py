"""Finds what Keras does otherwise than a call of ``fit`` says, from the arguments; it changes and keeps nothing."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, SupportsFloat

import keras

from accel_engine.events import CLASS_WEIGHT_IGNORED, EMPTY_BATCH
from accel_engine.words import numbers

LISTED = 4
"""The most keys that are named."""

UNKNOWN = -2
"""``tf.data.UNKNOWN_CARDINALITY``."""


def faults_of(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """The messages on a call of ``fit``.

    Args:
        arguments: The arguments by name, with the model as ``self``.
    """
    return (*_ignored_weights(arguments), *_empty_batches(arguments))


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
