"""The Keras model that converts the columns of a table to one matrix, to be saved with the trained model.

All numbers are standardised by one layer, in float64 where float32 would lose digits, and the mean of the training rows
replaces missing ones. Keras' ``FeatureSpace`` encodes categories and texts. It would have a layer for each number:
applying, saving and loading the ones of 784 columns takes 57 seconds instead of 10 (measured on two cores). Nor is it
adapted from a dataset, as that takes 11 seconds for 50,000 rows of 14 columns, and adapted vocabularies are saved as
lines of a file, from which an empty text does not come back.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from accel_engine.data.standardization import Standardization
from accel_engine.data.standardization_model import standardized
from accel_engine.data.tables.preprocessing import Preprocessing
from accel_engine.data.tables.raw_inputs import JOINED_CATEGORIES, NUMBERS

CATEGORIES = ".categories"
"""The end of the name of the layer that has the categories of an input; what precedes it is the input's name."""


def build(learned: Preprocessing) -> keras.Model:
    """Build the model from a dictionary of raw inputs to the matrix, float32 ``[n, features]``.

    Inputs are ``[n, 1]`` each, but for many numbers or categories, which are ``[n, columns]``.
    """
    with _float32():
        return _built(learned)


def _built(learned: Preprocessing) -> keras.Model:
    inputs = _inputs_of_numbers(learned)
    parts = []
    if learned.numbers:
        normalized = _standardized(inputs, learned)
        # The mean becomes 0, which replaces missing numbers.
        parts.append(keras.ops.where(keras.ops.isnan(normalized), 0.0, normalized))
    if learned.flagged:
        flagged = _columns(inputs, learned.flagged, learned, "numbers.flagged")
        parts.append(keras.ops.cast(keras.ops.isnan(flagged), "float32"))
    if learned.joins_categories:
        inputs[JOINED_CATEGORIES] = keras.Input((None,), name=JOINED_CATEGORIES, dtype="string")
        parts.append(_joined_categories(learned)(inputs[JOINED_CATEGORIES])[:, 1:])  # without others
    if learned.words or (learned.vocabularies and not learned.joins_categories):
        space = _feature_space(learned)
        inputs |= space.get_inputs()
        parts.append(space.get_encoded_features())
    return keras.Model(inputs, _concatenate(parts, "features.joined"), name="preprocessing")


def _inputs_of_numbers(learned: Preprocessing) -> dict[str, Any]:
    if learned.joined:
        dtype = "float64" if learned.precise else "float32"
        return {NUMBERS: keras.Input((len(learned.joined),), name=NUMBERS, dtype=dtype)}
    precise = frozenset(learned.precise)
    return {
        key: keras.Input((1,), name=key, dtype="float64" if key in precise else "float32") for key in learned.numbers
    }


def _columns(inputs: dict[str, Any], keys: Sequence[str], learned: Preprocessing, name: str) -> Any:
    """The numbers of some keys, ``[n, keys]``."""
    if not learned.joined:
        return _concatenate([inputs[key] for key in keys], name)
    if tuple(keys) == learned.joined:
        return inputs[NUMBERS]
    places = {key: place for place, key in enumerate(learned.joined)}
    return keras.ops.take(inputs[NUMBERS], [places[key] for key in keys], axis=1)


def _standardized(inputs: dict[str, Any], learned: Preprocessing) -> Any:
    """All numbers standardised, float32 ``[n, numbers]``; float64 and float32 ones each by one layer."""
    if not learned.precise or len(learned.precise) == len(learned.numbers):
        joined = _columns(inputs, learned.numbers, learned, "numbers.joined")
        return standardized(joined, learned.scaling, "numbers")
    parts, order = [], list[int]()
    for name, is_precise in (("single", False), ("double", True)):
        places = [place for place, key in enumerate(learned.numbers) if (key in learned.precise) == is_precise]
        joined = _concatenate([inputs[learned.numbers[place]] for place in places], f"numbers.{name}")
        scaling = Standardization(learned.scaling.mean[places], learned.scaling.scale[places])
        parts.append(standardized(joined, scaling, f"numbers.{name}"))
        order += places
    return keras.ops.take(_concatenate(parts, "numbers.joined"), np.argsort(order).tolist(), axis=1)


def _feature_space(learned: Preprocessing) -> Any:
    feature = keras.utils.FeatureSpace.feature
    lookup = keras.layers.StringLookup
    features = {
        key: feature("string", lookup(vocabulary=list(known), name=f"{key}{CATEGORIES}"), "one_hot")
        for key, known in learned.vocabularies.items()
        if not learned.joins_categories
    }
    for key, words in learned.words.items():
        features[key] = feature("string", _text_encoder(words), "float")
    space = keras.utils.FeatureSpace(features)
    space.build_from_config({})  # all layers have their vocabularies: there is nothing to adapt
    return space


def _joined_categories(learned: Preprocessing) -> Any:
    """Whether each category of each column is among the texts of a row: a layer for a column would take minutes."""
    pairs = [f"{key}={value}" for key in sorted(learned.vocabularies) for value in learned.vocabularies[key]]
    name = f"{JOINED_CATEGORIES}{CATEGORIES}"
    return keras.layers.StringLookup(vocabulary=pairs, output_mode="multi_hot", name=name)


def _text_encoder(words: Sequence[str]) -> Any:
    """Whether each word occurs in a text. Keras infers a dimension too many for the layer in a functional model."""
    layer = keras.layers.TextVectorization(output_mode="multi_hot", vocabulary=list(words))
    return keras.Sequential([keras.Input((1,), dtype="string"), layer, keras.layers.Reshape((len(words) + 1,))])


def _concatenate(parts: Sequence[Any], name: str) -> Any:
    """Join parts along the columns. Names with a dot are unlike the names of most columns, and of Keras' own layers."""
    return keras.layers.Concatenate(name=name, dtype=parts[0].dtype)(list(parts)) if len(parts) > 1 else parts[0]


@contextmanager
def _float32() -> Iterator[None]:
    """Layers that are made here compute in float32 on the CPU, whatever precision the run trains with."""
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float32")
    try:
        with tf.device("CPU:0"):
            yield
    finally:
        keras.config.set_dtype_policy(policy)
