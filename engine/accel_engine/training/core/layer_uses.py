"""The layers and operations of a functional model in the order in which they run, also inside nested models."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import keras

from accel_engine.keras_support.model_structure import walk_inside
from accel_engine.private_names.keras_graph_names import graph_nodes, graph_of_layers, run_node, standard_inputs
from accel_engine.private_names.keras_names import mask_of

Tensors = dict[int, Any]
"""Tensors by the id of their symbolic tensor."""


@dataclass(frozen=True, slots=True, eq=False)
class LayerUse:
    """One use of a layer or an operation; or the beginning or the end of a nested model, which computes nothing."""

    layer: Any
    """The layer or operation; ``None`` at the beginning and the end of a nested model."""
    inputs: tuple[Any, ...]
    """The symbolic tensors that it reads."""
    outputs: tuple[Any, ...]
    """The symbolic tensors that it makes."""
    run: Callable[[Tensors, Any], None]
    """Adds its outputs to the tensors, given the argument ``training`` of the model's ``call``."""

    @property
    def name(self) -> str:
        """The layer's name; empty at the beginning and the end of a nested model."""
        return self.layer.name if self.layer is not None else ""

    @property
    def layers(self) -> list[keras.Layer]:
        """The layer, and the layers of a nested model that runs as a whole."""
        if not isinstance(self.layer, keras.Layer):
            return []
        return [self.layer, *(each for each, _ in walk_inside(self.layer))]


def use_of_node(node: Any) -> LayerUse:
    """The use of a layer or an operation by a node of a functional model."""
    return LayerUse(node.operation, tuple(node.input_tensors), tuple(node.outputs), partial(run_node, node))


def layer_uses(functional: Any) -> list[LayerUse]:
    """The uses of layers of a :func:`~accel_engine.private_names.keras_graph_names.graph_of_layers`.

    What makes the model's outputs, and nothing else reads, comes last: a loss may read the logits before an output.
    """
    counts = Counter(id(node.operation) for node in graph_nodes(functional))
    uses = list(_uses(functional, counts))
    outputs = {id(symbol) for symbol in functional.outputs}
    for use in reversed(uses):
        if use.layer is None and any(id(symbol) in outputs for symbol in use.outputs):
            outputs |= {id(symbol) for symbol in use.inputs}
    read = {id(symbol) for use in uses if not (use.layer is None and _makes(use, outputs)) for symbol in use.inputs}
    last = [use for use in uses if _makes(use, outputs) and not any(id(symbol) in read for symbol in use.outputs)]
    return [*(use for use in uses if use not in last), *last]


def _makes(use: LayerUse, keys: set[int]) -> bool:
    return any(id(symbol) in keys for symbol in use.outputs)


def _uses(functional: Any, counts: Counter[int]) -> Iterator[LayerUse]:
    for node in graph_nodes(functional):
        inner = _nested(node, counts)
        if inner is None:
            yield use_of_node(node)
            continue
        yield LayerUse(None, tuple(node.input_tensors), tuple(inner.inputs), partial(_enter, node, inner))
        yield from _uses(inner, Counter(id(each.operation) for each in graph_nodes(inner)))
        yield LayerUse(None, tuple(inner.outputs), tuple(node.outputs), partial(_leave, node, inner))


def _nested(node: Any, counts: Counter[int]) -> Any:
    """The functional model that a node uses, if its layers can be in different stages: it has no other use."""
    inner = graph_of_layers(node.operation) if isinstance(node.operation, keras.Model) else None
    if inner is None or counts[id(node.operation)] > 1 or not graph_nodes(inner):
        return None
    given = len(node.arguments.args) == 1 and set(node.arguments.kwargs) <= {"training", "mask"}
    inside = {id(symbol) for each in graph_nodes(inner) for symbol in each.outputs}
    return inner if given and all(id(symbol) in inside for symbol in inner.outputs) else None


def _enter(node: Any, inner: Any, tensors: Tensors, training: Any) -> None:
    del training
    (inputs,), _ = node.arguments.fill_in(tensors)
    masks = [mask_of(each) for each in keras.tree.flatten(inputs)]
    tensors.update(zip(map(id, inner.inputs), standard_inputs(inner, inputs, masks), strict=True))


def _leave(node: Any, inner: Any, tensors: Tensors, training: Any) -> None:
    del training
    tensors.update((id(own), tensors[id(symbol)]) for own, symbol in zip(node.outputs, inner.outputs, strict=True))
