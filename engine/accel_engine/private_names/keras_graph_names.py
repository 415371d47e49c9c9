"""Private names of Keras' functional models, which are graphs of layers."""

from contextlib import suppress
from typing import Any

import keras

from accel_engine.private_names.keras_names import set_mask


def graph_of_layers(model: Any) -> Any:
    """The functional model that runs a model, a ``Sequential`` included; ``None`` for others.

    Without the private names, no model is known to be functional.
    """
    with suppress(ImportError):
        from keras.src.models.functional import Functional

        is_sequential = isinstance(model, keras.Sequential) and type(model).call is keras.Sequential.call
        functional = getattr(model, "_functional", None) if is_sequential else model
        is_own = isinstance(functional, Functional) and type(functional).call is Functional.call
        if is_own and hasattr(functional, "_nodes_by_depth") and hasattr(functional, "_standardize_inputs"):
            return functional
    return None


def graph_nodes(functional: Any) -> list[Any]:
    """The nodes of a :func:`graph_of_layers` in the order in which Keras runs them, without its inputs.

    A node is one use of a layer or operation. No public name gives them.
    """
    by_depth = functional._nodes_by_depth
    nodes = (node for depth in sorted(by_depth, reverse=True) for node in by_depth[depth])
    return [node for node in nodes if node.operation and not node.is_input]


def standard_inputs(functional: Any, inputs: Any, mask: Any) -> list[Any]:
    """The inputs of a :func:`graph_of_layers` as a list of tensors with their masks, as its ``call`` makes them."""
    tensors: list[Any] = functional._standardize_inputs(inputs)
    for tensor, own in zip(tensors, keras.tree.flatten(mask) if mask is not None else (), strict=False):
        if own is not None:
            set_mask(tensor, own)
    return tensors


def run_node(node: Any, tensors: dict[int, Any], training: Any) -> None:
    """Run a node of a functional model as its ``call`` does, and add the outputs.

    Args:
        node: The node.
        tensors: The tensors so far, by the id of the symbolic tensor.
        training: The argument of the model's ``call``.
    """
    arguments, keywords = node.arguments.fill_in(tensors)
    if training is not None and getattr(node.operation, "_call_has_training_arg", False):
        keywords["training"] = training
    outputs = node.operation(*arguments, **keywords)
    for symbol, tensor in zip(node.outputs, keras.tree.flatten(outputs), strict=False):
        tensors[id(symbol)] = tensor
