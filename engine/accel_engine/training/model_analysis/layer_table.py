"""Builds the table of a model's layers, with each layer's floating-point operations in a training step.

A graph does not say which layer an operation belongs to: Keras names operations after layers, but TensorFlow numbers
repeated names. So while a step is traced, each layer adds its operations, and thereby their gradients, under a name
scope with its index.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any

import keras
import tensorflow as tf

from accel_engine.keras_support.model_structure import override_calls, parameter_count, walk, walk_inside
from accel_engine.op_profile.op_names import innermost_mark
from accel_engine.run.diagnostics import Layer, LayerTable
from accel_engine.training.model_analysis.flops import FlopCount

_AGAIN = ", as above"
"""Added to the class of a layer that is already in the table."""


@contextmanager
def mark_layers(model: keras.Model) -> Iterator[None]:
    """Add the operations of the model's layers under name scopes, in graphs traced inside the ``with`` block."""
    numbers = number_layers(model)
    with override_calls({layer: _marking(layer.call, f"layer.{number}.") for layer, number in numbers.items()}):
        yield


def number_layers(model: Any) -> dict[Any, int]:
    """Number the layers of a model and of its nested models from 0, in their order."""
    return {layer: number for number, layer in enumerate(dict.fromkeys(layer for layer, _ in walk(model)))}


def tabulate(model: keras.Model, work: FlopCount) -> LayerTable:
    """List the layers of a model and of its nested models.

    Args:
        model: The model, traced inside :func:`mark_layers`.
        work: The operations of that graph, of a step on all replicas.
    """
    numbers = number_layers(model)
    flops = dict.fromkeys(numbers.values(), 0.0)
    rest = 0.0
    for name, operations in work.parts.items():
        if (mark := innermost_mark(name)) is not None:
            flops[mark] += operations
        else:
            rest += operations
    rows: list[Layer] = []
    seen: set[Any] = set()
    for layer, depth in walk(model):
        # A layer of two nested models counts once.
        fresh = {layer, *(each for each, _ in walk_inside(layer))} - seen
        counted = layer in fresh
        seen.add(layer)
        rows.append(
            Layer(
                name=layer.name,
                kind=type(layer).__name__ + ("" if counted else _AGAIN),
                depth=depth,
                shape=_shape(layer),
                parameters=layer.count_params() if counted else 0,
                trainable=parameter_count(layer.trainable_weights) if counted else 0,
                flops=None if work.flops is None else sum(flops[numbers[each]] for each in fresh),
                inner=isinstance(layer, keras.Model),
            )
        )
    if work.flops is None:
        return LayerTable(tuple(rows), reason=work.reason)
    return LayerTable(tuple(rows), work.flops, rest)


def changed_layer(model: keras.Model, trained: LayerTable | None) -> str:
    """Describe the first layer whose class differs from the trained run's, or is missing; empty if all are the same."""
    before = [layer.kind.removesuffix(_AGAIN) for layer in trained.layers] if trained else []
    now = [type(layer).__name__ for layer, _ in walk(model)]
    pairs = zip_longest(before, now, fillvalue="missing")
    return next((f"layer {was} is now {has}" for was, has in pairs if was != has), "") if before else ""


def _marking(call: Callable[..., Any], mark: str) -> Callable[..., Any]:
    def marking(*inputs: Any, **options: Any) -> Any:
        with tf.name_scope(mark):
            return call(*inputs, **options)

    return marking


def _shape(layer: Any) -> tuple[int | None, ...] | None:
    """The output shape of a layer for one example; ``None`` where it is unknown before a call."""
    output = getattr(layer, "output", None)
    return tuple(output.shape[1:]) if isinstance(output, keras.KerasTensor) else None
