"""Builds a plan's model and checks that it fits the data."""

import pkgutil
from typing import Any

import keras
import tensorflow as tf

from accel_engine import models
from accel_engine.data.standardization_model import without_units
from accel_engine.data.structure import Structure, describe, flatten, map_structure
from accel_engine.errors import ModelError
from accel_engine.keras_support.model_structure import has_custom_train_step
from accel_engine.models import ARGUMENTS, AutoModel, ModelEntry
from accel_engine.models.choose import default_model
from accel_engine.models.data_description import DataDescription
from accel_engine.models.exported_model import without_labels
from accel_engine.models.model_entry import BuildOptions
from accel_engine.models.pretrained_application import build_pretrained
from accel_engine.models.saved_model import load_saved
from accel_engine.private_names.keras_names import reset_names
from accel_engine.user_code import model_errors
from accel_engine.words import numbers

DEFAULTS = BuildOptions()
_OF_CLASSES = ("classification", "multi-label", "segmentation")


def build(spec: str, data: DataDescription, options: BuildOptions = DEFAULTS) -> keras.Model:
    """Build a model for some data.

    A custom function is called with the arguments of :data:`~accel_engine.models.ARGUMENTS` that it has.
    ``element_spec`` is of a batch, as ``tf.data.Dataset`` has it: ``(inputs, targets)`` of ``tf.TensorSpec``.

    Args:
        spec: The ``model`` of a plan.
        data: The data.
        options: How it is built.

    Returns:
        A model with weights, unless it has its own ``train_step`` and cannot be called; one of the catalogue is
        uncompiled. Layers without a name have those that they would have in a new process.

    Raises:
        PlanError: There is no such model, or no default for the data.
        ModelError: The model cannot be built, or does not fit the data.
    """
    reset_names()
    found = models.find(spec)
    if isinstance(found, AutoModel):
        found = default_model(data, pretrained=options.pretrained)
    if isinstance(found, ModelEntry):
        return _build_entry(found, data, options)
    is_saved = found.kind == "saved"
    function = found.user_function
    model = _saved(found.target, data, options) if is_saved else function.call(function.load(), _arguments(data))
    if not isinstance(model, keras.Model):
        raise ModelError(f"{found.name} returned {_article(model)}, not a keras.Model")
    _check_input(model, found.name, data)
    try:
        _build_weights(model, found.name, data)
    except ModelError:
        if not has_custom_train_step(model):  # such a model, a GAN for example, may not be callable at all
            raise
    return model


def _symbolic_inputs(data: DataDescription) -> Structure:
    """The inputs of a batch of any size, as Keras' symbolic tensors."""
    return map_structure(lambda spec: keras.KerasTensor((None, *spec.shape), spec.dtype), data.inputs)


def output_specs(model: keras.Model, data: DataDescription) -> Structure:
    """The specs of a model's outputs for a batch of any size.

    ``None`` if it has its own ``train_step``, and cannot be called.

    Raises:
        Exception: Any other model cannot be called.
    """
    try:
        return model.compute_output_spec(_symbolic_inputs(data))
    except Exception:
        if has_custom_train_step(model):
            return None
        raise


def _build_entry(entry: ModelEntry, data: DataDescription, options: BuildOptions) -> keras.Model:
    mismatch = entry.mismatch(data)
    is_unnamed = (data.task == "auto" and data.has_integer_targets) or (data.task in _OF_CLASSES and not mismatch)
    if is_unnamed and not data.classes and data.is_read:
        raise ModelError(
            f"model {entry.name} needs the number of classes: return class_names with the data, such as "
            "{'train': data, 'class_names': ['cat', 'dog']}"
        )
    if mismatch:
        raise ModelError(mismatch)
    if data.is_size_unknown:
        raise ModelError(f"the size of model {entry.name} is known once the data is read")
    if options.pretrained:
        return build_pretrained(entry.name, data.shape or (), data.classes, download=options.download)
    return pkgutil.resolve_name(entry.builder)(data)


def _saved(path: str, data: DataDescription, options: BuildOptions) -> keras.Model:
    """The model of a file, in standard deviations where the data is."""
    model = without_labels(load_saved(path, options))
    if not data.has_standard_targets:
        return model
    return without_units(model, has_raw_inputs=not data.has_standard_windows)


def _arguments(data: DataDescription) -> dict[str, Any]:
    """The arguments that a custom function may ask for."""
    specs = [
        map_structure(lambda spec: tf.TensorSpec((None, *spec.shape), spec.dtype), part)
        for part in (data.inputs, data.targets)
    ]
    element_spec = tuple(specs) if data.targets is not None else specs[0]
    values = data.shape, data.classes, data.classes, data.class_names, data.vocabulary, element_spec
    return dict(zip(ARGUMENTS, values, strict=True))


def _check_input(model: keras.Model, name: str, data: DataDescription) -> None:
    inputs, shape = getattr(model, "inputs", None), data.shape
    if not inputs:
        return  # unknown before the first call
    if len(inputs) != len(flatten(data.inputs)):
        raise ModelError(
            f"model {name} takes {numbers.counted(len(inputs), 'input')}; the data has {describe(data.inputs)}"
        )
    if shape is None:
        return  # names and shapes are checked when it is called
    taken = tuple(inputs[0].shape[1:])
    # Keras drops a trailing dimension of 1 that a model does not expect.
    if not any(_matches(taken, given) for given in (shape, shape[:-1] if shape[-1:] == (1,) else shape)):
        raise ModelError(f"model {name} takes {numbers.shape(taken)}; the data has {numbers.shape(shape)}")


def _matches(taken: tuple[int | None, ...], given: tuple[int | None, ...]) -> bool:
    return len(taken) == len(given) and all(
        want in (None, have) or have is None for want, have in zip(taken, given, strict=True)
    )


def _build_weights(model: keras.Model, name: str, data: DataDescription) -> None:
    """Create the weights of an unbuilt model, without computing anything."""
    example = _symbolic_inputs(data)
    with model_errors(f"model {name} does not accept examples of {_text(data)}"):
        if not model.built:
            model(example)
        model.compute_output_spec(example)


def _text(data: DataDescription) -> str:
    return numbers.shape(data.shape) if data.shape is not None else describe(data.inputs)


def _article(value: object) -> str:
    return "nothing" if value is None else f"an object of type {type(value).__name__}"
