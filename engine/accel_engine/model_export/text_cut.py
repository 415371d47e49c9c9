"""Cuts the string operations off a model, for runtimes that lack them, and describes how texts become numbers."""

from typing import Any, NamedTuple

import keras

from accel_engine.data.structure import flatten
from accel_engine.errors import ModelError
from accel_engine.inference.text_encoding import CATEGORY, MULTI_HOT, WORDS, TextEncoding


class CutModel(NamedTuple):
    """A model without string operations."""

    model: keras.Model
    """The model, from a dictionary of numbers."""
    encodings: dict[str, TextEncoding]
    """How texts become numbers, by input."""


def has_text(model: keras.Model) -> bool:
    """Whether a model takes text."""
    return any(tensor.dtype == "string" for tensor in getattr(model, "inputs", None) or ())


def cut_text(model: keras.Model, only_name: str) -> CutModel:
    """Cut the string operations off a functional model.

    Args:
        model: Each of its texts goes to one ``StringLookup`` or ``TextVectorization``.
        only_name: The name of its input, unless inputs are a dictionary.

    Raises:
        ModelError: The model is not functional, or has other string operations; the message names them.
    """
    if isinstance(model, keras.Sequential) or not hasattr(model, "operations"):
        raise ModelError("texts go into a model that is not functional: it cannot be cut after its vocabulary")
    given = model.input if isinstance(model.input, dict) else {only_name: model.input}
    if not all(hasattr(tensor, "dtype") for tensor in given.values()):
        raise ModelError("texts go into a model with a structure of inputs")
    names = {id(tensor): name for name, tensor in given.items()}
    inputs = {name: tensor for name, tensor in given.items() if tensor.dtype != "string"}
    encodings: dict[str, TextEncoding] = {}
    for operation in model.operations:
        taken = flatten(operation.input) if not isinstance(operation, keras.layers.InputLayer) else []
        if not any(tensor.dtype == "string" for tensor in taken):
            continue
        name = names.get(id(taken[0])) if len(taken) == 1 else None
        if name is None or name in inputs:
            raise ModelError(f"texts go through {operation.name} of the model, or through several layers")
        encodings[name] = _encoding(operation, tuple(taken[0].shape[1:]))
        inputs[name] = operation.output
    return CutModel(_with_one_hot(model, inputs), encodings)


def _with_one_hot(model: keras.Model, inputs: dict[str, Any]) -> keras.Model:
    """The part of a model after some of its tensors, whose one-hot encodings use an operation that LiteRT has."""
    after, sizes = dict(inputs), {}
    names = {id(tensor): name for name, tensor in inputs.items()}
    for layer in model.operations:
        name = names.get(id(layer.input)) if isinstance(layer, keras.layers.CategoryEncoding) else None
        if name and inputs[name].shape[1:] == (1,) and layer.output_mode in ("one_hot", "multi_hot"):
            after[name], sizes[name] = layer.output, layer.num_tokens
    part = keras.Model(list(after.values()), model.output, name=model.name)
    outer = {name: keras.Input(each.shape[1:], dtype=each.dtype, name=name) for name, each in inputs.items()}
    encoded = {
        name: keras.ops.reshape(keras.ops.one_hot(each, sizes[name]), (-1, sizes[name])) if name in sizes else each
        for name, each in outer.items()
    }
    return keras.Model(outer, part([encoded[name] for name in after]), name=model.name)


def _encoding(layer: Any, shape: tuple[int, ...]) -> TextEncoding:
    """How a layer encodes texts.

    Raises:
        ModelError: The layer is of another class, or has settings that cannot be converted.
    """
    if isinstance(layer, keras.Sequential) and isinstance(layer.layers[0], keras.layers.TextVectorization):
        if not all(isinstance(each, keras.layers.Reshape) for each in layer.layers[1:]):
            raise ModelError(f"texts go through {layer.name}, which has other layers than TextVectorization")
        return _vectorization(layer.layers[0], layer.output, shape)
    if isinstance(layer, keras.layers.TextVectorization):
        return _vectorization(layer, layer.output, shape)
    if isinstance(layer, keras.layers.StringLookup):
        config = layer.get_config()
        if (config["num_oov_indices"], config["mask_token"], config["output_mode"]) != (1, None, "int"):
            raise ModelError(f"{layer.name} has settings that cannot be converted: give it one index for unknown texts")
        return TextEncoding(CATEGORY, tuple(layer.get_vocabulary()), 0, shape, dtype=str(layer.output.dtype))
    raise ModelError(f"texts go through {layer.name}, a {type(layer).__name__}")


def _vectorization(layer: Any, output: Any, shape: tuple[int, ...]) -> TextEncoding:
    config, words = layer.get_config(), tuple(layer.get_vocabulary())
    if (config["standardize"], config["split"]) != ("lower_and_strip_punctuation", "whitespace"):
        raise ModelError(f"{layer.name} has another way than Keras' default to standardize or to split texts")
    kinds = {"int": (WORDS, 1), "multi_hot": (MULTI_HOT, 0)}
    length = output.shape[-1] if len(output.shape) > 1 else None
    if config["output_mode"] not in kinds or length is None:
        raise ModelError(f"{layer.name} gives neither words of a fixed number nor whether a text has each word")
    kind, unknown = kinds[config["output_mode"]]
    ngrams = config["ngrams"] or (1,)
    sizes = tuple(range(1, ngrams + 1)) if isinstance(ngrams, int) else tuple(ngrams)
    return TextEncoding(kind, words, unknown, shape, int(length), sizes, str(output.dtype))
