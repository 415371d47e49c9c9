"""The table of a model's layers, with what each computes in a training step.

A graph does not tell which layer an operation belongs to: Keras names it after its layer, but whatever is
called twice in a graph gets a number, as layers do. While a loop's step is traced, each layer therefore marks
what it adds to the graph, and so its gradients too, with a number of its own.
"""

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any

import keras
import tensorflow as tf

from accel_engine.run.diagnostics import Layer, LayerTable
from accel_engine.training.flops import Count
from accel_engine.training.layer_call_override import replaced

_AGAIN = ", as above"
"""Beside the class of a layer that stands in the table already."""

_MARK = re.compile(r"layer\.(\d+)\.")


@contextmanager
def marked(model: keras.Model) -> Iterator[None]:
    """Mark what the model's layers add to the graph that is traced meanwhile."""
    numbers = _numbered(model)
    with replaced({layer: _marking(layer.call, f"layer.{number}.") for layer, number in numbers.items()}):
        yield


def tabulate(model: keras.Model, work: Count) -> LayerTable:
    """The layers of a model, those of models within it too.

    Args:
        model: Was marked while the graph was traced, as by :class:`~accel_engine.training.loop.Loop`.
        work: Counted in that graph, of a step on all replicas.
    """
    numbers = _numbered(model)
    flops = dict.fromkeys(numbers.values(), 0.0)
    rest = 0.0
    for name, operations in work.parts.items():
        if marks := _MARK.findall(name):
            flops[int(marks[-1])] += operations  # the last mark is the innermost layer's
        else:
            rest += operations
    rows: list[Layer] = []
    seen: set[Any] = set()
    for layer, depth in walk(model):
        # What stands twice, in two models within this one, is there once.
        fresh = {layer, *(each for each, _ in _inner(layer))} - seen
        counted = layer in fresh
        seen.add(layer)
        rows.append(
            Layer(
                name=layer.name,
                kind=type(layer).__name__ + ("" if counted else _AGAIN),
                depth=depth,
                shape=_shape(layer),
                parameters=layer.count_params() if counted else 0,
                trainable=sum(math.prod(weight.shape) for weight in layer.trainable_weights) if counted else 0,
                flops=None if work.flops is None else sum(flops[numbers[each]] for each in fresh),
                inner=isinstance(layer, keras.Model),
            )
        )
    if work.flops is None:
        return LayerTable(tuple(rows), reason=work.reason)
    return LayerTable(tuple(rows), work.flops, rest)


def changed_layer(model: keras.Model, trained: LayerTable | None) -> str:
    """Say where a model's layers are of other classes than when its run was trained; nothing where they are not."""
    before = [layer.kind.removesuffix(_AGAIN) for layer in trained.layers] if trained else []
    now = [type(layer).__name__ for layer, _ in walk(model)]
    pairs = zip_longest(before, now, fillvalue="nothing")
    return next((f"layer {was} is now {has}" for was, has in pairs if was != has), "") if before else ""


def walk(model: Any, depth: int = 0) -> Iterator[tuple[Any, int]]:
    """The layers of a model and how many models they are within; a model within before its layers."""
    for layer in model.layers:
        if not isinstance(layer, keras.layers.InputLayer):
            yield layer, depth
            yield from _inner(layer, depth + 1)


def _inner(layer: Any, depth: int = 0) -> Iterator[tuple[Any, int]]:
    return walk(layer, depth) if isinstance(layer, keras.Model) else iter(())


def _numbered(model: Any) -> dict[Any, int]:
    return {layer: number for number, layer in enumerate(dict.fromkeys(layer for layer, _ in walk(model)))}


def _marking(call: Callable[..., Any], mark: str) -> Callable[..., Any]:
    def marking(*inputs: Any, **options: Any) -> Any:
        with tf.name_scope(mark):
            return call(*inputs, **options)

    return marking


def _shape(layer: Any) -> tuple[int | None, ...] | None:
    """Of its output for one example, where it has one and that is known without running it."""
    output = getattr(layer, "output", None)
    return tuple(output.shape[1:]) if isinstance(output, keras.KerasTensor) else None
