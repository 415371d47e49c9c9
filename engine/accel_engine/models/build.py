"""Building the model that a plan names, and checking that it fits the data before training starts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras

from accel_engine import models, registry
from accel_engine.errors import ModelError
from accel_engine.models import ModelEntry, UserModel
from accel_engine.models.model_entry import Shape, shape_text
from accel_engine.models.traits import output_units, overrides_train_step
from accel_engine.models.user_code import call, reason


def build(
    spec: str, input_shape: Shape, classes: int, is_trained: Callable[[keras.Model], bool] = lambda _: True
) -> keras.Model:
    """Build a model for data of this shape.

    The user's function is called with those of ``input_shape``, ``classes`` and ``num_classes`` that
    it names as parameters.

    Args:
        spec: What a plan's ``model`` may be.
        input_shape: Shape of one example, without the batch.
        classes: Number of classes in the data.
        is_trained: Whether a model is the one that a run was trained with: of the catalogue's, the first version of
            which that is so is built, or else the newest.

    Returns:
        A built model; uncompiled when it is the catalogue's, else as the user made it.

    Raises:
        PlanError: There is no such model.
        ModelError: It cannot be built, or does not fit the data.
    """
    found = models.find(spec)
    if isinstance(found, ModelEntry):
        if mismatch := found.mismatch(input_shape):
            raise ModelError(mismatch)
        model: keras.Model = registry.load(found.builder)(input_shape=input_shape, classes=classes)
        earlier = (registry.load(builder)(input_shape=input_shape, classes=classes) for builder in found.earlier)
        return model if is_trained(model) else next(filter(is_trained, earlier), model)
    if found.kind == "saved":
        model = _load(found)
    else:
        model = call(found, {"input_shape": input_shape, "classes": classes, "num_classes": classes})
    if not isinstance(model, keras.Model):
        raise ModelError(f"{found.name} returned {_article(model)}, not a keras.Model")
    _check_input(model, found.name, input_shape)
    _build_weights(model, found.name, input_shape)
    if not overrides_train_step(model):
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
        return  # not known before the model is called
    if len(inputs) > 1:
        raise ModelError(f"model {name} takes {len(inputs)} inputs; data has one")
    taken = tuple(inputs[0].shape[1:])
    # Keras itself drops a last side of 1 that a model does not want.
    if not any(_matches(taken, given) for given in (shape, shape[:-1] if shape[-1:] == (1,) else shape)):
        raise ModelError(f"model {name} takes {shape_text(taken)}; data has {shape_text(shape)}")


def _matches(taken: tuple[int | None, ...], given: Shape) -> bool:
    return len(taken) == len(given) and all(want in (None, have) for want, have in zip(taken, given, strict=True))


def _build_weights(model: keras.Model, name: str, shape: Shape) -> None:
    """Make the weights of a model that waits for its first call, without computing anything."""
    example = keras.KerasTensor((None, *shape))
    try:
        if not model.built:
            model(example)
        model.compute_output_spec(example)
    except Exception as error:
        raise ModelError(f"model {name} cannot take examples of {shape_text(shape)}: {reason(error)}") from error


def _check_output(model: keras.Model, name: str, shape: Shape, classes: int) -> None:
    units = output_units(model, shape)
    if units >= classes or (units == 1 and classes == 2):
        return
    found = f"{units} number{'s' * (units != 1)}" if units else "something other than a row of numbers"
    raise ModelError(f"model {name} gives {found} for an example; data has {classes} classes")


def _article(value: object) -> str:
    return "nothing" if value is None else f"an object of type {type(value).__name__}"
