"""Builds the Keras model that is served: raw inputs by name go in, and named outputs come out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from accel_engine.data.standardization import Standardization
from accel_engine.data.standardization_model import dtype_of_units, in_units, shape_in_units, shaped_as_targets
from accel_engine.data.structure import Structure, flatten, map_structure, named_leaves
from accel_engine.errors import ModelError
from accel_engine.keras_support.losses import is_of_keras, single_loss
from accel_engine.models.exported_model import INPUT, LABEL, PROBABILITIES, input_name
from accel_engine.trained.open_trained import TrainedModel
from accel_engine.training.core.task import Task, probabilities_of
from accel_engine.user_code import model_errors

_CLASSIFIERS = ("classification", "multi-label", "sequence", "segmentation")
_NAMES = {"regression": "values", "reconstruction": "reconstruction"}


@dataclass(frozen=True, slots=True)
class Servable:
    """A model to serve."""

    model: keras.Model
    """A functional model from a dictionary of raw inputs to a dictionary of outputs, without labels."""
    labels: tuple[str, ...]
    """Names of the classes, if the label of the most probable one can be an output; empty otherwise."""
    restore: Callable[[dict[str, Any]], Structure]
    """Converts outputs back to the trained model's, in a graph."""

    def with_labels(self) -> keras.Model:
        """The model with an output for the label of the most probable class, string ``[batch]``."""
        if not self.labels:
            return self.model
        outputs = dict(self.model.output)
        best = keras.ops.argmax(outputs[PROBABILITIES], axis=-1)
        lookup = keras.layers.StringLookup(vocabulary=list(self.labels), num_oov_indices=0, invert=True, name=LABEL)
        return keras.Model(self.model.input, {**outputs, LABEL: lookup(best)}, name=self.model.name)


def servable(
    trained: TrainedModel,
    preprocessing: keras.Model | None,
    model: keras.Model | None = None,
    *,
    is_encoded: bool = False,
    has_units: bool = True,
) -> Servable:
    """Build the model that is served.

    Args:
        trained: The trained model and its data.
        preprocessing: A model from raw columns to the inputs; ``None`` if the model takes raw inputs.
        model: A model that computes what the trained one does, in another form; by default the trained model itself.
        is_encoded: Whether ``model`` takes a dictionary of encoded texts, not the dataset's inputs.
        has_units: Whether outputs have the units of the targets, not of :func:`units_of`.

    Raises:
        ModelError: The model cannot be called on symbolic inputs.
    """
    dataset, model = trained.dataset, _uncompiled(model or trained.model)
    raw, prepared = _inputs(trained, preprocessing, model if is_encoded else None)
    with model_errors("the model cannot be traced"):
        outputs = model(prepared)
        found = _outputs(outputs, model, trained, has_units=has_units)
        named = keras.Model(raw, found, name=trained.model.name)
    structure = map_structure(lambda _: None, outputs) if not isinstance(outputs, dict) else outputs
    names = dataset.class_names if trained.task.name == "classification" and PROBABILITIES in found else ()
    is_complete = len(names) == (found[PROBABILITIES].shape[-1] if names else 0) and len(set(names)) == len(names)
    return Servable(named, names if is_complete else (), _restorer(trained, structure, list(found)))


def _inputs(
    trained: TrainedModel, preprocessing: keras.Model | None, encoded: keras.Model | None
) -> tuple[Any, Structure]:
    """Raw inputs by name, and what the model takes from them; ``encoded`` takes raw inputs."""
    dataset = trained.dataset
    if preprocessing is not None:
        taken = preprocessing.input
        if not isinstance(taken, dict):
            raw = {INPUT: keras.Input(taken.shape[1:], dtype=taken.dtype, name=INPUT)}
            return raw, preprocessing(raw[INPUT])
        raw = _named_inputs(taken)
        return raw, preprocessing(raw)
    specs = dataset.spec.inputs
    if encoded is not None:
        raw = _named_inputs(encoded.input)
        return raw, raw
    raw = {
        input_name(path): keras.Input(spec.shape, dtype=spec.dtype, name=input_name(path))
        for path, spec in named_leaves(specs)
    }
    if len(raw) != len(flatten(specs)):
        raise ModelError("two inputs have the same name")
    tensors = iter(raw.values())
    structure = _packed(specs, dict(zip((path for path, _ in named_leaves(specs)), tensors, strict=True)))
    factor = trained.scale
    if factor == 1.0 and not dataset.value_range.pixels:
        return raw, structure
    return raw, map_structure(lambda tensor: keras.layers.Rescaling(factor, dtype="float32")(tensor), structure)


def _uncompiled(model: keras.Model) -> keras.Model:
    """The same layers without optimizer, loss and metrics, where the model is nothing but layers."""
    if not type(model).__module__.startswith("keras."):
        return model
    if isinstance(model, keras.Sequential):
        return keras.Model(model.inputs[0], model.outputs[0], name=model.name)
    return keras.Model(model.input, model.output, name=model.name)


def _named_inputs(tensors: dict[str, Any]) -> dict[str, Any]:
    return {key: keras.Input(each.shape[1:], dtype=each.dtype, name=key) for key, each in tensors.items()}


def _packed(specs: Structure, tensors: dict[str, Any], name: str = "") -> Structure:
    """The structure of ``specs`` with the tensors of their paths."""
    if isinstance(specs, dict):
        return {key: _packed(part, tensors, f"{name}/{key}" if name else str(key)) for key, part in specs.items()}
    if isinstance(specs, tuple | list):
        return type(specs)(
            _packed(part, tensors, f"{name}/{index}" if name else str(index)) for index, part in enumerate(specs)
        )
    return tensors[name]


def _outputs(outputs: Structure, model: keras.Model, trained: TrainedModel, *, has_units: bool) -> dict[str, Any]:
    leaves, task = flatten(outputs), trained.task
    if len(leaves) == 1 and task.name in _CLASSIFIERS:
        is_known_loss = is_of_keras(single_loss(trained.model.loss))
        return {PROBABILITIES: _probabilities(_float32(leaves[0]), task, is_known_loss=is_known_loss)}
    if units := units_of(trained):
        convert = in_units if has_units else shaped_as_targets
        leaves = [convert(_float32(leaves[0]), units, trained.dataset.spec.targets.shape)]
        outputs = map_structure(lambda _: leaves[0], outputs)
    if len(leaves) == 1 and task.name in _NAMES:
        return {_NAMES[task.name]: _float32(leaves[0])}
    if isinstance(outputs, dict):
        named = list(named_leaves(outputs))
        paths, leaves = [path for path, _ in named], [leaf for _, leaf in named]
    else:
        paths = list(getattr(model, "output_names", None) or [])
    names = list(map(input_name, paths))
    if len(set(names)) != len(leaves):
        names = [f"output_{index}" for index in range(len(leaves))]
    return dict(zip(names, map(_float32, leaves), strict=True))


def units_of(trained: TrainedModel) -> Standardization | None:
    """How the values of a model's only output were standardised; ``None`` if they were not, or are probabilities."""
    leaves, scaling = flatten(trained.outputs), trained.dataset.target_scaling
    if scaling is None or len(leaves) != 1 or trained.task.name in _CLASSIFIERS:
        return None
    shown = shape_in_units(leaves[0].shape[1:], scaling, trained.dataset.spec.targets.shape)
    return scaling if shown is not None else None


def _float32(tensor: Any) -> Any:
    """The tensor as float32, if it is of a half precision."""
    return keras.ops.cast(tensor, "float32") if tensor.dtype in ("float16", "bfloat16") else tensor


def _probabilities(outputs: Any, task: Task, *, is_known_loss: bool) -> Any:
    """As :func:`accel_engine.training.core.task.probabilities_of`, by layers."""
    if task.binary or task.name == "multi-label":
        positive = keras.ops.sigmoid(outputs) if task.logits else outputs
        return keras.ops.concatenate([1.0 - positive, positive], axis=-1) if task.binary else positive
    if task.logits:
        return keras.ops.softmax(outputs)
    if is_known_loss:
        return outputs
    fits = keras.ops.all(keras.ops.logical_and(outputs >= 0, outputs <= 1), axis=-1, keepdims=True)
    return keras.ops.where(fits, outputs, keras.ops.softmax(outputs))


def _restorer(trained: TrainedModel, structure: Structure, names: list[str]) -> Callable[[dict[str, Any]], Structure]:
    """A function from served outputs to what the loss and the metrics take."""
    task, units, specs = trained.task, units_of(trained), flatten(trained.outputs)

    def restore(found: dict[str, Any]) -> Structure:
        if units:
            values = (tf.cast(found[names[0]], tf.float64) - units.mean) / units.scale
            shape = [-1, *(specs[0].shape[1:] if None not in specs[0].shape[1:] else values.shape[1:])]
            return _rebuilt(structure, [tf.cast(tf.reshape(values, shape), tf.float32)])
        if names != [PROBABILITIES]:
            return _rebuilt(structure, [found[name] for name in names])
        probabilities = found[PROBABILITIES][..., 1:] if task.binary else found[PROBABILITIES]
        if not task.logits:
            return _rebuilt(structure, [probabilities])
        return _rebuilt(structure, [logits_of(probabilities, of_sigmoid=task.binary or task.name == "multi-label")])

    return restore


def logits_of(probabilities: Any, *, of_sigmoid: bool) -> Any:
    """Logits that give such probabilities, in a graph: as near to the model's own as float32 can tell.

    A sigmoid above 1 - 2**-25 is rounded to 1, so a logit above 17.3 cannot be told from it.

    Args:
        probabilities: Float32, of classes on the last axis, or of a sigmoid each.
        of_sigmoid: Whether each has its own sigmoid.
    """
    logits = tf.math.log(tf.maximum(probabilities, np.finfo(np.float32).tiny))
    return logits - tf.math.log(tf.maximum(1.0 - probabilities, 2.0**-25)) if of_sigmoid else logits


def _rebuilt(structure: Structure, tensors: list[Any]) -> Structure:
    """A structure like ``structure`` with these tensors for its leaves."""
    if isinstance(structure, dict):
        return dict(zip(sorted(structure), tensors, strict=True))
    if isinstance(structure, tuple | list):
        return type(structure)(tensors)
    return tensors[0]


def shown_outputs(outputs: Structure, trained: TrainedModel) -> list[Any]:
    """The outputs of the trained model in the form in which they are served and predicted, in a graph."""
    leaves, task = flatten(outputs), trained.task
    if len(leaves) == 1 and task.name in _CLASSIFIERS:
        return [probabilities_of(leaves[0], task)]
    shown = [tf.cast(leaf, tf.float32) if leaf.dtype in (tf.float16, tf.bfloat16) else leaf for leaf in leaves]
    if units := units_of(trained):
        sides = shape_in_units(shown[0].shape[1:], units, trained.dataset.spec.targets.shape) or ()
        values = shown[0] if None in sides else tf.reshape(shown[0], [-1, *sides])
        return [tf.cast(tf.cast(values, tf.float64) * units.scale + units.mean, dtype_of_units(units))]
    return shown
