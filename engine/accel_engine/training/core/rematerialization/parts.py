"""Divides a model into the parts that are computed again for their gradients, and runs it in these parts."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import keras
import tensorflow as tf

from accel_engine.keras_support.model_structure import override_calls, parameter_count
from accel_engine.private_names.keras_graph_names import graph_nodes, graph_of_layers, run_node, standard_inputs
from accel_engine.private_names.keras_names import all_layers, sublayers
from accel_engine.training.core.rematerialization.partition import Operation, choose_cuts
from accel_engine.training.core.rematerialization.recomputation import Part, Tracing, run_part

_DOMINATES = 0.5
"""Share of a model from which one of its layers is divided itself."""


@dataclass(frozen=True, slots=True)
class GraphParts:
    """A functional model in parts.

    Attributes:
        model: The model, whose ``call`` is replaced.
        functional: What runs it: itself, or inside a ``Sequential``.
        ranges: First and last node of each part that is computed again, the last excluded.
    """

    model: keras.Model
    functional: Any
    ranges: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class ModelParts:
    """The parts of a model.

    Attributes:
        graphs: Functional models, each in several parts.
        layers: Layers that are parts themselves.
        activations: Estimated number of values that training saves for one example without these parts; ``None`` if
            unknown.
        saved: Estimated number of values that it saves with them; ``None`` if unknown.
    """

    graphs: tuple[GraphParts, ...] = ()
    layers: tuple[keras.Layer, ...] = ()
    activations: int | None = None
    saved: int | None = None

    @property
    def count(self) -> int:
        """Number of parts."""
        return len(self.layers) + sum(len(graph.ranges) for graph in self.graphs)

    @property
    def saved_share(self) -> float | None:
        """Share of the activations that are still saved; ``None`` if unknown."""
        if not self.count:
            return 1.0
        return self.saved / self.activations if self.saved is not None and self.activations else None


def divide(model: keras.Model) -> ModelParts:
    """Divide a model: one of Keras' own functional models between layers, other models into their layers."""
    functional = graph_of_layers(model)
    if functional is None:
        return _divide_layers(model)
    nodes = graph_nodes(functional)
    operations = [_operation(node) for node in nodes]
    total = sum(each.saved for each in operations)
    for node, operation in zip(nodes, operations, strict=True):
        inner = node.operation
        if operation.saved > _DOMINATES * total and isinstance(inner, keras.Model) and (parts := divide(inner)).count:
            saved = None if parts.saved is None else total - operation.saved + parts.saved
            return ModelParts(parts.graphs, parts.layers, total, saved)
    partition = choose_cuts(operations)
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
        inside = [index for index in usable if id(nodes[index].operation) in chosen and index not in taken]
        ranges += _consecutive(inside)
    layers = dict.fromkeys(layer for group in groups for layer in group if id(layer) not in in_graph)
    return ModelParts((GraphParts(model, functional, tuple(sorted(ranges))),) if ranges else (), tuple(layers))


@contextmanager
def run_in_parts(parts: ModelParts, tracing: Tracing) -> Iterator[None]:
    """Recompute the parts of a model in the steps that are traced inside the ``with`` block.

    Args:
        parts: The parts.
        tracing: How the steps are traced.
    """
    calls: dict[Any, Callable[..., Any]] = {graph.model: _graph_call(graph, tracing) for graph in parts.graphs}
    calls |= {layer: _layer_call(layer, tracing) for layer in parts.layers}
    with override_calls(calls):
        yield


def _graph_call(graph: GraphParts, tracing: Tracing) -> Callable[..., Any]:
    """A ``call`` for a functional model."""
    functional, nodes = graph.functional, graph_nodes(graph.functional)
    starts = dict(graph.ranges)
    keras_call = graph.model.call

    def call(inputs: Any, training: Any = None, mask: Any = None, **options: Any) -> Any:
        if options:  # arguments of the user's own, which layers take from the context
            return keras_call(inputs, training=training, mask=mask, **options)
        tensors = dict(zip(map(id, functional.inputs), standard_inputs(functional, inputs, mask), strict=True))
        index = 0
        while index < len(nodes):
            if (last := starts.get(index)) is not None:
                _run_nodes(nodes, range(index, last), functional, tensors, training, tracing)
            else:
                run_node(nodes[index], tensors, training)
            index = index + 1 if last is None else last
        outputs = keras.tree.map_structure(lambda symbol: tensors[id(symbol)], functional.output)
        return outputs[0] if isinstance(outputs, list | tuple) and len(outputs) == 1 else outputs

    return call


def _run_nodes(
    nodes: list[Any],
    chosen: range,
    functional: Any,
    tensors: dict[int, Any],
    training: Any,
    tracing: Tracing,
) -> None:
    """Run consecutive nodes of a functional model as one part, and add their outputs to its tensors."""
    own = nodes[chosen.start : chosen.stop]
    made = {id(symbol) for node in own for symbol in node.outputs}
    needed = list(dict.fromkeys(id(symbol) for node in own for symbol in node.input_tensors if id(symbol) not in made))
    later = {id(symbol) for node in nodes[chosen.stop :] for symbol in node.input_tensors}
    later |= {id(symbol) for symbol in functional.outputs}
    given = [key for key in dict.fromkeys(id(symbol) for node in own for symbol in node.outputs) if key in later]

    def compute(inputs: list[tf.Tensor]) -> list[tf.Tensor]:
        inner = dict(zip(needed, inputs, strict=True))
        for node in own:
            run_node(node, inner, training)
        return [inner[key] for key in given]

    layers = dict.fromkeys(node.operation for node in own if isinstance(node.operation, keras.Layer))
    outputs = run_part(Part(compute, tuple(layers)), [tensors[key] for key in needed], tracing)
    tensors.update(zip(given, outputs, strict=True))


def _layer_call(layer: keras.Layer, tracing: Tracing) -> Callable[..., Any]:
    """A ``call`` for a layer that is a part: it recomputes the layer's own ``call``."""
    own_call = layer.call

    def call(*arguments: Any, **options: Any) -> Any:
        result: list[Any] = []

        def compute(inputs: list[tf.Tensor]) -> list[tf.Tensor]:
            again, named = _filled((arguments, options), inputs)
            result[:] = [own_call(*again, **named)]
            return _tensors(result[0])

        outputs = run_part(Part(compute, (layer,), caller=layer), _tensors((arguments, options)), tracing)
        return _filled(result[0], outputs)

    return call


def _tensors(structure: Any) -> list[tf.Tensor]:
    """The tensors of a structure."""
    return [leaf for leaf in keras.tree.flatten(structure) if isinstance(leaf, tf.Tensor)]


def _filled(structure: Any, tensors: Sequence[tf.Tensor]) -> Any:
    """A structure with other tensors in the place of its own."""
    rest = iter(tensors)
    return keras.tree.map_structure(lambda leaf: next(rest) if isinstance(leaf, tf.Tensor) else leaf, structure)


def _operation(node: Any) -> Operation:
    outputs = {id(symbol): _size(symbol) for symbol in node.outputs}
    return Operation(frozenset(id(symbol) for symbol in node.input_tensors), outputs, _saved(node))


def _saved(node: Any) -> int:
    """Values that a node saves for its gradient, of one example; estimated where layers are inside a layer."""
    inner = graph_of_layers(node.operation) if isinstance(node.operation, keras.Model) else None
    if inner is not None:
        return sum(_saved(each) for each in graph_nodes(inner))
    largest = max((_size(symbol) for symbol in (*node.outputs, *node.input_tensors)), default=0)
    inside = len(list(all_layers(node.operation))) if isinstance(node.operation, keras.Layer) else 1
    return inside * largest if inside > 1 else sum(_size(symbol) for symbol in node.outputs)


def _size(symbol: Any) -> int:
    """Values of a symbolic tensor for one example; dimensions that are not known count as one."""
    return math.prod(side or 1 for side in symbol.shape[1:])


def _divisible(nodes: list[Any], chosen: range) -> Iterator[tuple[int, int]]:
    """The runs of some consecutive nodes that can be parts and save something: at least two nodes, or a block."""
    usable = [index for index in chosen if _is_usable(nodes[index])]
    for first, last in _consecutive(usable):
        if last - first > 1 or len(list(_leaves(nodes[first].operation))) > 1:
            yield first, last


def _is_usable(node: Any) -> bool:
    """Whether a node can be in a part: its outputs have gradients, and those of its weights are not sparse."""
    dense = not any(isinstance(each, keras.layers.Embedding) for each in _leaves(node.operation))
    differentiable = all(keras.backend.is_float_dtype(symbol.dtype) for symbol in node.outputs)
    return dense and differentiable and not any(symbol.sparse for symbol in (*node.outputs, *node.input_tensors))


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
    """The layers of a model that have layers inside them; those of a layer that is most of the model."""
    layers = sublayers(model)
    total = parameter_count(model.variables)
    graphs: list[GraphParts] = []
    chosen: list[Any] = []
    for layer in layers:
        if len(list(all_layers(layer))) == 1 or not layer.built:
            continue
        if parameter_count(layer.variables) > _DOMINATES * total:
            inner = divide(layer) if isinstance(layer, keras.Model) else _divide_layers(layer)
            graphs += inner.graphs
            chosen += inner.layers
        elif not any(isinstance(each, keras.layers.Embedding) for each in all_layers(layer)):
            chosen.append(layer)
    return ModelParts(tuple(graphs), tuple(chosen))
