"""The parts of a model that are computed again for their gradients, and how it runs in them."""

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from accel_engine.keras_support.model_structure import override_calls
from accel_engine.private_names.keras_graph_names import graph_nodes, run_node, standard_inputs
from accel_engine.training.core.layer_uses import LayerUse, use_of_node
from accel_engine.training.core.rematerialization.recomputation import RecomputedPart, Tracing, run_part


@dataclass(frozen=True, slots=True)
class GraphParts:
    """A functional model in parts."""

    model: keras.Model
    """The model, whose ``call`` is replaced."""
    functional: Any
    """The functional model that runs: itself, or the one inside a ``Sequential``."""
    ranges: tuple[tuple[int, int], ...]
    """First and last node of each part that is computed again, the last excluded."""


@dataclass(frozen=True, slots=True)
class ModelParts:
    """The parts of a model."""

    graphs: tuple[GraphParts, ...] = ()
    """Functional models, each in several parts."""
    layers: tuple[keras.Layer, ...] = ()
    """Layers that are parts themselves."""
    activations: int | None = None
    """Estimated number of values that training saves for one example without these parts; ``None`` if unknown."""
    saved: int | None = None
    """Estimated number of values that it saves with them; ``None`` if unknown."""

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
    nodes: list[Any], chosen: range, functional: Any, tensors: dict[int, Any], training: Any, tracing: Tracing
) -> None:
    """Run consecutive nodes of a functional model as one part, and add their outputs to its tensors."""
    own = [use_of_node(node) for node in nodes[chosen.start : chosen.stop]]
    later = {id(symbol) for node in nodes[chosen.stop :] for symbol in node.input_tensors}
    later |= {id(symbol) for symbol in functional.outputs}
    run_uses_as_part(own, later, tensors, training, tracing)


def run_uses_as_part(
    own: Sequence[LayerUse], later: Container[int], tensors: dict[int, Any], training: Any, tracing: Tracing
) -> None:
    """Run consecutive uses of layers as one part, and add the outputs that are read later to the tensors.

    Args:
        own: The uses.
        later: Ids of the symbolic tensors that are read later.
        tensors: The tensors so far, by the id of the symbolic tensor.
        training: The argument of the model's ``call``.
        tracing: How the step is traced.
    """
    made = {id(symbol) for use in own for symbol in use.outputs}
    needed = list(dict.fromkeys(id(symbol) for use in own for symbol in use.inputs if id(symbol) not in made))
    given = [key for key in dict.fromkeys(id(symbol) for use in own for symbol in use.outputs) if key in later]

    def compute(inputs: list[tf.Tensor]) -> list[tf.Tensor]:
        inner = dict(zip(needed, inputs, strict=True))
        for use in own:
            use.run(inner, training)
        return [inner[key] for key in given]

    layers = dict.fromkeys(use.layer for use in own if isinstance(use.layer, keras.Layer))
    outputs = run_part(RecomputedPart(compute, tuple(layers)), [tensors[key] for key in needed], tracing)
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

        outputs = run_part(RecomputedPart(compute, (layer,), caller=layer), _tensors((arguments, options)), tracing)
        return _filled(result[0], outputs)

    return call


def _tensors(structure: Any) -> list[tf.Tensor]:
    return [leaf for leaf in keras.tree.flatten(structure) if isinstance(leaf, tf.Tensor)]


def _filled(structure: Any, tensors: Sequence[tf.Tensor]) -> Any:
    """A structure with its tensors replaced."""
    rest = iter(tensors)
    return keras.tree.map_structure(lambda leaf: next(rest) if isinstance(leaf, tf.Tensor) else leaf, structure)
