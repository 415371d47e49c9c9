"""The form of exported models: the names of their inputs and outputs, raw columns of tables, labels."""

import keras

from accel_engine.data.tables.preprocessing_model import CATEGORIES
from accel_engine.data.tables.raw_inputs import JOINED_CATEGORIES, NUMBERS
from accel_engine.keras_support.model_structure import model_input, model_output
from accel_engine.private_names.keras_names import all_layers

INPUT = "inputs"
"""The only input of a model that has no name for it."""

OUTPUT = "outputs"
"""The only output, as the model computes it."""

PROBABILITIES, LABEL = "probabilities", "label"
"""The outputs of an exported classifier: the probability of each class, and the name of the most probable one."""


def input_name(path: str) -> str:
    """The name of an input, from its path in the structure of a dataset's inputs; letters that SavedModels allow."""
    name = "".join(char if char.isascii() and (char.isalnum() or char in "_.-") else "_" for char in path)
    return f"input_{name}" if name[:1].isdecimal() else name or INPUT


def text_lookups(model: keras.Model) -> list[keras.layers.StringLookup]:
    """The layers whose outputs are texts, although Keras takes them for integers."""
    return [layer for layer in model.layers if isinstance(layer, keras.layers.StringLookup) and layer.invert]


def class_names(model: keras.Model) -> tuple[str, ...]:
    """The names of the classes, if the model has the output for labels that exported classifiers have."""
    output = model_output(model)
    if not isinstance(output, dict) or set(output) != {PROBABILITIES, LABEL}:
        return ()
    lookups = (layer for layer in text_lookups(model) if layer.name == LABEL)
    return next((tuple(map(str, lookup.get_vocabulary())) for lookup in lookups), ())


def categories(model: keras.Model) -> dict[str, tuple[str, ...]]:
    """The categories of a table's inputs, by their keys, which the layers of the preprocessing have."""
    lookups = [layer for layer in all_layers(model) if layer.name.endswith(CATEGORIES)]
    found = {each.name.removesuffix(CATEGORIES): tuple(each.get_vocabulary()[1:]) for each in lookups}  # without others
    for pair in found.pop(JOINED_CATEGORIES, ()):
        key, _, value = pair.partition("=")
        found[key] = (*found.get(key, ()), value)
    return found


def raw_columns(model: keras.Model) -> dict[str, str]:
    """The columns of a table that a model takes one by one, or as one matrix, with their dtypes.

    Empty if it takes something else.
    """
    given = model_input(model)
    tensors = keras.tree.flatten(given) if isinstance(given, dict | list | tuple) else []
    joined = (NUMBERS, JOINED_CATEGORIES)
    is_columns = bool(tensors) and all(tuple(each.shape[1:]) == (1,) or each.name in joined for each in tensors)
    return {tensor.name: str(tensor.dtype) for tensor in tensors} if is_columns else {}


def without_labels(model: keras.Model) -> keras.Model:
    """An exported model as one that can be trained and evaluated: from its inputs to its only output of numbers.

    The model itself, if it is compiled or has another form. A classifier gets the loss of its probabilities.
    """
    output, names = model_output(model), class_names(model)
    if model.compiled or not isinstance(output, dict):
        return model
    texts = [layer.output for layer in text_lookups(model)]
    numbers = [tensor for tensor in output.values() if not any(tensor is each for each in texts)]
    if len(numbers) != 1:
        return model
    given = model_input(model)
    single = next(iter(given.values())) if isinstance(given, dict) and len(given) == 1 else given
    found = keras.Model(given if raw_columns(model) else single, numbers[0], name=model.name)
    if names:
        found.compile(loss="sparse_categorical_crossentropy")
    return found
