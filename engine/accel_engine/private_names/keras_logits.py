"""The logits that Keras' crossentropies take in place of probabilities, which they clip at 1e-7.

Keras' activations leave them at their output; of TensorFlow's own softmax and sigmoid, Keras takes the input of the
operation. Neither survives slicing, or leaving the graph. Without the private name, losses of parts are clipped.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from accel_engine.private_names.keras_names import mask_of, set_mask

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
    """A model's outputs for parts of a batch as those of the batch, with their masks and logits.

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
