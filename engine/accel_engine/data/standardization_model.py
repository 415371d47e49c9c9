"""Standardises columns in a Keras model, and restores units, as :mod:`accel_engine.data.standardization` does."""

import math
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from accel_engine.data.standardization import Standardization, WindowNormalization
from accel_engine.keras_support.model_structure import model_input, model_output

_UNITS = "units"
"""The name of the last layer of a model that answers in the units of its targets."""


def standardized(values: Any, scaling: Standardization, name: str) -> Any:
    """Standardise a tensor, ``[..., columns]``.

    Keras' ``Normalization`` takes variances, which leave the range of float32 long before the numbers do, and never
    divides by less than 1e-7. What float32 cannot hold of a mean is subtracted after the division.

    Args:
        values: A symbolic tensor, float64 or float32. The layers compute in this type.
        scaling: The statistics of its columns.
        name: How the names of the layers begin. Keras' own names begin anew with each model that is built, but
            the names in a preprocessing stay the same in several models.

    Returns:
        float32, of the same shape.
    """
    centre = scaling.mean.astype(np.float32).astype(np.float64)
    rest = (scaling.mean - centre) / scaling.scale
    dtype, factor = values.dtype, (1 / scaling.scale).tolist()
    centred = keras.layers.Rescaling(1.0, (-centre).tolist(), dtype=dtype, name=f"{name}.centred")(values)
    divided = keras.layers.Rescaling(factor, (-rest).tolist(), dtype=dtype, name=f"{name}.standardized")(centred)
    return keras.ops.cast(divided, "float32")


def model_of_windows(windows: WindowNormalization) -> keras.Model:
    """The part of a saved model that standardises raw windows."""
    inputs = keras.Input((windows.window, len(windows.scaling.mean)), dtype=windows.dtype)
    return keras.Model(inputs, standardized(inputs, windows.scaling, "windows"))


def in_units(outputs: Any, scaling: Standardization, shape: Sequence[int]) -> Any:
    """Give standardised outputs the units of the targets.

    Args:
        outputs: A symbolic tensor ``[batch, ...]``.
        scaling: The statistics of the targets' columns.
        shape: The shape of an example's targets; see :func:`shape_in_units`.

    Returns:
        float32, or float64 where float32 would lose digits.

    Raises:
        ValueError: The outputs have other values than the targets.
    """
    outputs, dtype = shaped_as_targets(outputs, scaling, shape), dtype_of_units(scaling)
    centre = scaling.mean.astype(np.float32).astype(np.float64)  # a layer's numbers are float32, whatever its type
    rest = (scaling.mean - centre).tolist()
    near = keras.layers.Rescaling(scaling.scale.tolist(), rest, dtype=dtype, name=f"{_UNITS}.scaled")(outputs)
    return keras.layers.Rescaling(1.0, centre.tolist(), dtype=dtype, name=_UNITS)(near)


def units_of_model(model: Any) -> Standardization | None:
    """The statistics by which :func:`in_units` gave a model's only output its units; ``None`` if it did not."""
    found = _units_layers(model)
    if found is None:
        return None
    near, units = ({name: np.array(getattr(each, name), np.float64) for name in ("scale", "offset")} for each in found)
    return Standardization(np.atleast_1d(near["offset"] + units["offset"]), np.atleast_1d(near["scale"]))


def without_units(model: keras.Model, *, has_raw_inputs: bool) -> keras.Model:
    """The model before :func:`in_units`, which gives standard deviations; the model itself if it has no units.

    Args:
        model: A model with inputs of known shapes.
        has_raw_inputs: Whether it takes raw inputs still; otherwise :func:`standardized` ones.
    """
    found = _units_layers(model)
    if found is None:
        return model
    inner = [layer for layer in model.layers if isinstance(layer, keras.Model)]
    if not has_raw_inputs and len(inner) == 1:
        return inner[0]
    outputs = keras.tree.map_structure(lambda _: found[0].input, model_output(model))
    return keras.Model(model_input(model), outputs, name=model.name)


def _units_layers(model: Any) -> tuple[Any, Any] | None:
    """The two layers of :func:`in_units` that end a model; ``None`` if others do."""
    layers = [each for each in getattr(model, "layers", ()) if isinstance(each, keras.layers.Rescaling)]
    ends = keras.tree.flatten(model_output(model))
    units = next((each for each in layers if each.name == _UNITS and len(ends) == 1 and each.output is ends[0]), None)
    near = next((each for each in layers if units is not None and each.output is units.input), None)
    return None if near is None else (near, units)


def shaped_as_targets(outputs: Any, scaling: Standardization, shape: Sequence[int]) -> Any:
    """Give standardised outputs the shape of :func:`in_units`.

    Raises:
        ValueError: The outputs have other values than the targets.
    """
    shown = shape_in_units(outputs.shape[1:], scaling, shape)
    if shown is None:
        raise ValueError(f"outputs of the shape {outputs.shape[1:]} are not targets of the shape {shape}")
    return (
        outputs
        if shown == tuple(outputs.shape[1:])
        else keras.layers.Reshape(shown, dtype="float32", name="units.shaped")(outputs)
    )


def dtype_of_units(scaling: Standardization) -> str:
    """The type of numbers in the units of some columns: float64 where float32 would lose digits."""
    near = np.linspace(-2.0, 2.0, 17)
    columns = [mean + scale * near for mean, scale in zip(scaling.mean, scaling.scale, strict=True)]
    return "float64" if any(scaling.lost_by_float32(columns)) else "float32"


def shape_in_units(
    own: Sequence[int | None], scaling: Standardization, shape: Sequence[int]
) -> tuple[int | None, ...] | None:
    """The shape in which an example's output has the units of the targets: its own, or the targets'.

    Returns:
        ``None`` if its values are not the targets'.
    """
    if len(scaling.mean) == 1 or tuple(own[-1:]) == (len(scaling.mean),):
        return tuple(own)
    fixed = [side for side in own if side is not None]
    return tuple(shape) if len(fixed) == len(own) and math.prod(fixed) == math.prod(shape) else None
