"""Divides a model into the parts that are computed again for their gradients."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import keras

from accel_engine.keras_support.model_structure import parameter_count
from accel_engine.private_names.keras_graph_names import graph_nodes, graph_of_layers
from accel_engine.private_names.keras_names import all_layers, sublayers
from accel_engine.training.core.layer_uses import LayerUse, use_of_node
from accel_engine.training.core.rematerialization.parts import GraphParts, ModelParts

_DOMINATES = 0.5
"""Share of a model from which one of its layers is divided itself."""


def divide_model(model: keras.Model) -> ModelParts:
    """Divide a model: one of Keras' own functional models between layers, other models into their layers."""
    functional = graph_of_layers(model)
    if functional is None:
        return _divide_layers(model)
    nodes = graph_nodes(functional)
    operations = [_operation(node) for node in nodes]
    total = sum(each.saved for each in operations)
    for node, operation in zip(nodes, operations, strict=True):
        inner = node.operation
        if (
            operation.saved > _DOMINATES * total
            and isinstance(inner, keras.Model)
            and (parts := divide_model(inner)).count
        ):
            saved = None if parts.saved is None else total - operation.saved + parts.saved
            return ModelParts(parts.graphs, parts.layers, total, saved)
    partition = choose_partition(operations)
    edges = [0, *partition.cuts]  # not the last part, whose gradient comes first
    ranges = [run for first, last in pairwise(edges) for run in _divisible(nodes, range(first, last))]
    return ModelParts((GraphParts(model, functional, tuple(ranges)),) if ranges else (), (), total, partition.saved)


def divide_by_layers(model: keras.Model, groups: Sequence[Sequence[keras.Layer]]) -> ModelParts:
    """Divide a model by chosen layers: consecutive ones of a group are one part, those inside other layers one each.

    Args:
        model: The model.
        groups: Layers of the model, or of models and layers inside it.
    """
    functional = graph_of_layers(model)
    nodes = graph_nodes(functional) if functional is not None else []
    in_graph = {id(node.operation) for node in nodes}
    # Not the layers with the model's outputs: from a softmax, Keras' losses take the logits.
    results = {id(symbol) for symbol in functional.outputs} if functional is not None else set()
    usable = [index for index, node in enumerate(nodes) if not any(id(symbol) in results for symbol in node.outputs)]
    ranges: list[tuple[int, int]] = []
    for group in groups:
        chosen = {id(layer) for layer in group}
        taken = {index for first, last in ranges for index in range(first, last)}
        members = [index for index in usable if id(nodes[index].operation) in chosen and index not in taken]
        ranges += _consecutive(members)
    layers = dict.fromkeys(layer for group in groups for layer in group if id(layer) not in in_graph)
    return ModelParts((GraphParts(model, functional, tuple(sorted(ranges))),) if ranges else (), tuple(layers))


_BOUNDS = 64
"""How many sizes of a part are tried."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of a model."""

    inputs: frozenset[int]
    """Keys of the tensors that it reads."""
    outputs: dict[int, int]
    """Sizes of the tensors that it makes, by key."""
    saved: int
    """The size of the activations that stay in memory for its gradient."""


@dataclass(frozen=True, slots=True)
class Partition:
    """Where to cut a sequence of operations."""

    cuts: tuple[int, ...]
    """The first operation of each part but the first."""
    saved: int
    """The largest size of all saved activations at a time."""


def choose_partition(operations: Sequence[Operation]) -> Partition:
    """The partition with the fewest saved activations; without cuts if they reduce nothing.

    Args:
        operations: In the order in which they run.
    """
    best = Partition((), sum(each.saved for each in operations))
    crossing = _crossing(operations)
    bounds = _bounds(operations)
    tried = {_greedy(operations, crossing, each, bound) for each in _candidates(crossing) for bound in bounds}
    for cuts in sorted(tried):
        saved = saved_with(operations, cuts)
        if (saved, len(cuts)) < (best.saved, len(best.cuts)):
            best = Partition(cuts, saved)
    return best


def saved_with(operations: Sequence[Operation], cuts: Sequence[int]) -> int:
    """The values saved at a time by a sequence in parts: tensors between parts, and the inside of the largest."""
    sizes = {key: size for each in operations for key, size in each.outputs.items()}
    crossing = _crossing(operations)
    between = {key for cut in cuts for key in crossing[cut]}
    edges = [0, *cuts, len(operations)]
    saved_inside = [sum(each.saved for each in operations[first:last]) for first, last in pairwise(edges)]
    return sum(sizes[key] for key in between) + max(saved_inside, default=0)


def _crossing(operations: Sequence[Operation]) -> list[dict[int, int]]:
    """Sizes of the tensors that are made before an operation and read by it or a later one, for each operation."""
    last = {key: index for index, each in enumerate(operations) for key in each.inputs}
    found: list[dict[int, int]] = []
    alive: dict[int, int] = {}
    for index, each in enumerate(operations):
        alive = {key: size for key, size in alive.items() if last.get(key, -1) >= index}
        found.append(dict(alive))
        alive |= each.outputs
    return found


def _candidates(crossing: list[dict[int, int]]) -> list[list[int]]:
    """Where to cut: where one tensor crosses; or, for long shortcuts and masks, where no fewer values do nearby."""
    sizes = [sum(tensors.values()) for tensors in crossing]
    inner = range(1, len(sizes))
    single = [index for index in inner if len(crossing[index]) == 1]
    low = [index for index in inner if sizes[index] <= min(sizes[max(1, index - 1) : index + 2])]
    return [single, low]


def _bounds(operations: Sequence[Operation]) -> list[int]:
    """Sizes of a part to try, from the size of the largest operation to the size of all."""
    smallest, whole = max((each.saved for each in operations), default=0), sum(each.saved for each in operations)
    if not smallest:
        return []
    return [int(smallest * (whole / smallest) ** (step / _BOUNDS)) for step in range(_BOUNDS)]


def _greedy(
    operations: Sequence[Operation], crossing: list[dict[int, int]], candidates: list[int], bound: int
) -> tuple[int, ...]:
    """Cut as late as a bound of each part's size allows, in its second half where the fewest values cross."""
    total, sums = 0, [0]
    for each in operations:
        total += each.saved
        sums.append(total)
    cuts: list[int] = []
    first = 0
    while total - sums[first] > bound:
        later = [index for index in candidates if index > first]
        within = [index for index in later if sums[index] - sums[first] <= bound]
        upper = [index for index in within if 2 * (sums[index] - sums[first]) >= bound] or within[-1:] or later[:1]
        if not upper:
            break
        first = min(upper, key=lambda index: (sum(crossing[index].values()), -index))
        cuts.append(first)
    return tuple(cuts)


def _operation(node: Any) -> Operation:
    outputs = {id(symbol): _size(symbol) for symbol in node.outputs}
    return Operation(frozenset(id(symbol) for symbol in node.input_tensors), outputs, _saved(node))


def _saved(node: Any) -> int:
    """Values that a node saves for its gradient, of one example; estimated where layers are inside a layer."""
    inner = graph_of_layers(node.operation) if isinstance(node.operation, keras.Model) else None
    if inner is not None:
        return sum(_saved(each) for each in graph_nodes(inner))
    largest = max((_size(symbol) for symbol in (*node.outputs, *node.input_tensors)), default=0)
    layers = len(list(all_layers(node.operation))) if isinstance(node.operation, keras.Layer) else 1
    return layers * largest if layers > 1 else sum(_size(symbol) for symbol in node.outputs)


def _size(symbol: Any) -> int:
    """Values of a symbolic tensor for one example; dimensions that are not known count as one."""
    return math.prod(side or 1 for side in symbol.shape[1:])


def _divisible(nodes: list[Any], chosen: range) -> Iterator[tuple[int, int]]:
    """The runs of some consecutive nodes that can be parts and save something: at least two nodes, or a block."""
    usable = [index for index in chosen if is_usable(use_of_node(nodes[index]))]
    for first, last in _consecutive(usable):
        if last - first > 1 or len(list(_leaves(nodes[first].operation))) > 1:
            yield first, last


def is_usable(use: LayerUse) -> bool:
    """Whether a use can be in a part: its outputs have gradients, and the gradients of its weights are dense."""
    dense = not any(isinstance(each, keras.layers.Embedding) for each in _leaves(use.layer))
    differentiable = all(keras.backend.is_float_dtype(symbol.dtype) for symbol in use.outputs)
    return dense and differentiable and not any(symbol.sparse for symbol in (*use.outputs, *use.inputs))


def _leaves(operation: Any) -> Iterator[Any]:
    return all_layers(operation) if isinstance(operation, keras.Layer) else iter(())


def _consecutive(indices: Sequence[int]) -> list[tuple[int, int]]:
    """Runs of increasing numbers, as first and last, the last excluded."""
    runs: list[tuple[int, int]] = []
    for index in indices:
        if runs and runs[-1][1] == index:
            runs[-1] = (runs[-1][0], index + 1)
        else:
            runs.append((index, index + 1))
    return runs


def _divide_layers(model: Any) -> ModelParts:
    """The layers of a model that have layers inside them; of a layer that is most of the model, its layers."""
    layers = sublayers(model)
    total = parameter_count(model.variables)
    graphs: list[GraphParts] = []
    chosen: list[Any] = []
    for layer in layers:
        if len(list(all_layers(layer))) == 1 or not layer.built:
            continue
        if parameter_count(layer.variables) > _DOMINATES * total:
            inner = divide_model(layer) if isinstance(layer, keras.Model) else _divide_layers(layer)
            graphs += inner.graphs
            chosen += inner.layers
        elif not any(isinstance(each, keras.layers.Embedding) for each in all_layers(layer)):
            chosen.append(layer)
    return ModelParts(tuple(graphs), tuple(chosen))
