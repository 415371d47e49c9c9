"""Private names of Keras: functional models, which are graphs of layers, logits, and variables in TensorFlow."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import keras
import tensorflow as tf

from accel_engine.private_names.keras_names import mask_of, set_mask


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


_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {"Softmax": tf.nn.softmax, "Sigmoid": tf.sigmoid}


def rows_of(output: Any, rows: Callable[[Any], Any]) -> Any:
    """Some rows of a model's output, with their mask and logits; in a graph.

    Args:
        output: The output, ``[batch, ...]``.
        rows: Takes the rows of an array.
    """
    logits, mask, activation = getattr(output, "_keras_logits", None), mask_of(output), _activation_of(output)
    found = rows(output) if activation is None or logits is not None else activation(rows(output.op.inputs[0]))
    if logits is not None:
        set_logits(found, rows(logits))
    if mask is not None:
        set_mask(found, rows(mask))
    return found


def joined_outputs(outputs: Sequence[Any]) -> Any:
    """A model's outputs for parts of a batch as outputs for the batch, with their masks and logits.

    Args:
        outputs: ``[examples, ...]`` each, at least one.
    """
    activation = _activation_of(outputs[0])
    logits = [getattr(each, "_keras_logits", None) for each in outputs]
    masks = [mask_of(each) for each in outputs]
    if activation is None or logits[0] is not None:
        found = tf.concat(outputs, axis=0)
    else:
        found = activation(tf.concat([each.op.inputs[0] for each in outputs], axis=0))
    if logits[0] is not None:
        set_logits(found, tf.concat(logits, axis=0))
    if masks[0] is not None:
        set_mask(found, tf.concat(masks, axis=0))
    return found


def activation_before_loss(output: Any) -> str:
    """The activation before which Keras' crossentropies take an output, in a graph.

    Returns:
        ``sigmoid`` or ``softmax``; empty if they take the output as it is.
    """
    is_sigmoid = tf.is_symbolic_tensor(output) and output.op.type == "Sigmoid"
    has_logits = hasattr(output, "_keras_logits") or _activation_of(output) is not None
    return ("sigmoid" if is_sigmoid else "softmax") if has_logits else ""


def set_logits(output: Any, logits: Any) -> None:
    """Give an output the logits that Keras' crossentropies take in its place."""
    output._keras_logits = logits


def _activation_of(output: Any) -> Callable[[Any], Any] | None:
    return _ACTIVATIONS.get(output.op.type) if tf.is_symbolic_tensor(output) else None


def move_variable(variable: keras.Variable, device: str) -> None:
    """Move a variable's value to a device; it stays the same variable of its layer and in checkpoints.

    Of the copies that the replicas of a strategy have, in whose scope this is called, one remains. No public name
    replaces the ``tf.Variable`` of a Keras variable. Does nothing if it is there already. Not made by ``tf.Variable``,
    which puts it on the devices of a strategy.
    """
    before, *others = tf.distribute.get_strategy().experimental_local_results(variable.value)
    with tf.device(device):
        after = type(before)(
            before.value(),
            trainable=before.trainable,
            name=variable.name,
            dtype=before.dtype,
            shape=before.shape,
            aggregation=before.aggregation,
            synchronization=before.synchronization,
        )
    if others or before.device != after.device:
        variable._value = after
