"""Divides a model into blocks of layers, as a drawing of a few lines shows it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

import keras

from accel_engine.requests.describe_model import ModelBlock

_ATTACHED = ("Normalization", "Dropout", "Activation", "ReLU", "ELU", "Pooling", "Flatten", "Reshape", "Softmax")
"""Parts of the class names of layers that belong to the block before them; others begin one."""

_AFTER_BRANCHES = ("Activation", "ReLU")
"""The same for layers that belong to a block with branches."""

_PERIOD = 4
"""Blocks of which a repeated sequence consists at most."""


def model_blocks(model: keras.Model) -> tuple[tuple[ModelBlock, ...], bool]:
    """The blocks of a model, and whether each takes the output of the one before.

    A block with branches reaches from where they begin to where one tensor joins them, as around a residual connection.
    If Keras does not know a model's connections, as of a subclass, a block is all layers of a class.
    """
    operations = getattr(model, "operations", model.layers)  # also what is no layer, such as keras.ops.pad
    layers = [layer for layer in operations if not isinstance(layer, keras.layers.InputLayer)]
    parts = _parts(model, layers)
    if parts is None:
        return tuple(_by_class(layers)), False
    return tuple(_repeated(list(_joined(parts)))), True


def _parts(model: keras.Model, layers: Sequence[Any]) -> list[list[Any]] | None:
    """Layers in parts between which only one tensor passes.

    ``None`` where the connections are unknown, or a layer has several outputs.
    """
    if isinstance(model, keras.Sequential):
        return [[layer] for layer in layers]
    try:
        made = {id(layer.output): number for number, layer in enumerate(layers)}
        taken = [[id(tensor) for tensor in _tensors(layer.input)] for layer in layers]
        results = {id(tensor) for tensor in model.outputs}
        inputs = {id(tensor): -1 for tensor in model.inputs}
    except (AttributeError, TypeError, ValueError):  # a subclass, or a layer that is called twice
        return None
    known = {**made, **inputs}
    if any(tensor not in known for tensors in (*taken, results) for tensor in tensors):
        return None
    last_use = {known[tensor]: number for number, tensors in enumerate(taken) for tensor in tensors}
    last_use |= {known[tensor]: len(layers) for tensor in results}
    parts: list[list[Any]] = [[]]
    for number, layer in enumerate(layers):
        parts[-1].append(layer)
        if all(last_use.get(source, number) <= number for source in range(-1, number)):
            parts.append([])
    return [part for part in parts if part]


def _tensors(structure: Any) -> list[Any]:
    return keras.tree.flatten(structure)


def _joined(parts: Iterable[Sequence[Any]]) -> Iterator[ModelBlock]:
    """Blocks of a part that is not attached, and the attached parts after it; the first one also has those before."""
    block: list[Sequence[Any]] = []
    for part in parts:
        works = any(not _has_name(each, _ATTACHED) for each in block)
        names = _AFTER_BRANCHES if any(len(each) > 1 for each in block) else _ATTACHED
        if works and not _has_name(part, names):
            yield _block(block)
            block = []
        block.append(part)
    if block:
        yield _block(block)


def _has_name(part: Sequence[Any], names: Iterable[str]) -> bool:
    return len(part) == 1 and any(name in type(part[0]).__name__ for name in names)


def _block(parts: Sequence[Sequence[Any]]) -> ModelBlock:
    layers = [layer for part in parts for layer in part]
    return ModelBlock(
        tuple(type(layer).__name__ for layer in layers),
        _shape(layers[-1]),
        _parameters(layers),
        has_branches=any(len(part) > 1 for part in parts),
    )


def _repeated(blocks: Sequence[ModelBlock]) -> Iterator[ModelBlock]:
    """Blocks of which equal ones, or equal sequences, that follow each other are one."""
    at = 0
    while at < len(blocks):
        period, count = max(
            ((period, _repetitions(blocks, at, period)) for period in range(1, _PERIOD + 1)),
            key=lambda found: (found[0] * found[1] if found[1] > 1 else 1, -found[0]),
        )
        period = period if count > 1 else 1
        same, at = blocks[at : at + period * count], at + period * count
        yield ModelBlock(
            tuple(layer for block in same[:period] for layer in block.layers),
            same[-1].shape,
            sum(block.parameters for block in same),
            count,
            any(block.has_branches for block in same),
        )


def _repetitions(blocks: Sequence[ModelBlock], at: int, period: int) -> int:
    """How often the sequence of blocks at a place follows itself, at least once."""
    parts = [blocks[first : first + period] for first in range(at, len(blocks), period)]
    return sum(1 for _ in takewhile(lambda part: _without_parameters(part) == _without_parameters(parts[0]), parts))


def _without_parameters(blocks: Sequence[ModelBlock]) -> list[ModelBlock]:
    return [replace(block, parameters=0) for block in blocks]


def _by_class(layers: Iterable[Any]) -> Iterator[ModelBlock]:
    classes: dict[str, list[Any]] = {}
    for layer in layers:
        classes.setdefault(type(layer).__name__, []).append(layer)
    for kind, found in classes.items():
        yield ModelBlock((kind,), (), _parameters(found), len(found))


def _parameters(layers: Iterable[Any]) -> int:
    return sum(layer.count_params() for layer in layers if isinstance(layer, keras.Layer) and layer.built)


def _shape(layer: Any) -> tuple[int | None, ...]:
    """The shape of a layer's output for one example; empty where it is unknown, or if it has several outputs."""
    output = getattr(layer, "output", None)
    return tuple(output.shape[1:]) if isinstance(output, keras.KerasTensor) else ()
