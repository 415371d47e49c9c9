"""Builds a plan's model and checks that it fits the data."""

import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras

from accel_engine import models
from accel_engine.errors import ModelError
from accel_engine.keras_support.model_structure import has_custom_train_step
from accel_engine.models import ModelEntry, UserModel
from accel_engine.models.model_entry import Shape, shape_text
from accel_engine.models.traits import output_units
from accel_engine.models.user_code import call, reason


def build(
    spec: str, input_shape: Shape, classes: int, is_trained: Callable[[keras.Model], bool] = lambda _: True
) -> keras.Model:
    """Build a model for data of a given shape.

    A custom function is called with those of ``input_shape``, ``classes`` and ``num_classes`` that it has as
    parameters.

    Args:
        spec: The ``model`` of a plan.
        input_shape: Shape of one example, without the batch.
        classes: Number of classes.
        is_trained: Whether a model is the one that a run was trained with. The first matching version of a catalogue
            model is built, by default the newest.

    Returns:
        A built model; one of the catalogue is uncompiled.

    Raises:
        PlanError: There is no such model.
        ModelError: The model cannot be built, or does not fit the data.
    """
    found = models.find(spec)
    if isinstance(found, ModelEntry):
        if mismatch := found.mismatch(input_shape):
            raise ModelError(mismatch)
        model: keras.Model = pkgutil.resolve_name(found.builder)(input_shape=input_shape, classes=classes)
        earlier = (pkgutil.resolve_name(builder)(input_shape=input_shape, classes=classes) for builder in found.earlier)
        return model if is_trained(model) else next(filter(is_trained, earlier), model)
    if found.kind == "saved":
        model = _load(found)
    else:
        model = call(found, {"input_shape": input_shape, "classes": classes, "num_classes": classes})
    if not isinstance(model, keras.Model):
        raise ModelError(f"{found.name} returned {_article(model)}, not a keras.Model")
    _check_input(model, found.name, input_shape)
    _build_weights(model, found.name, input_shape)
    if not has_custom_train_step(model):
        _check_output(model, found.name, input_shape, classes)
    return model


def _load(model: UserModel) -> Any:
    try:
        return keras.models.load_model(Path(model.target).expanduser())
    except Exception as error:
        raise ModelError(f"cannot load {model.target}: {reason(error)}") from error


def _check_input(model: keras.Model, name: str, shape: Shape) -> None:
    inputs = getattr(model, "inputs", None)
    if not inputs:
        return  # unknown before the first call
    if len(inputs) > 1:
        raise ModelError(f"model {name} takes {len(inputs)} inputs; the data has one")
    taken = tuple(inputs[0].shape[1:])
    # Keras drops a trailing dimension of 1 that a model does not expect.
    if not any(_matches(taken, given) for given in (shape, shape[:-1] if shape[-1:] == (1,) else shape)):
        raise ModelError(f"model {name} takes {shape_text(taken)}; the data has {shape_text(shape)}")


def _matches(taken: tuple[int | None, ...], given: Shape) -> bool:
    return len(taken) == len(given) and all(want in (None, have) for want, have in zip(taken, given, strict=True))


def _build_weights(model: keras.Model, name: str, shape: Shape) -> None:
    """Create the weights of an unbuilt model, without computing anything."""
    example = keras.KerasTensor((None, *shape))
    try:
        if not model.built:
            model(example)
        model.compute_output_spec(example)
    except Exception as error:
        raise ModelError(f"model {name} does not accept examples of {shape_text(shape)}: {reason(error)}") from error


def _check_output(model: keras.Model, name: str, shape: Shape, classes: int) -> None:
    units = output_units(model, shape)
    if units >= classes or (units == 1 and classes == 2):
        return
    found = f"{units} value{'s' * (units != 1)}" if units else "something other than a vector"
    raise ModelError(f"model {name} outputs {found} per example; the data has {classes} classes")


def _article(value: object) -> str:
    return "nothing" if value is None else f"an object of type {type(value).__name__}"
