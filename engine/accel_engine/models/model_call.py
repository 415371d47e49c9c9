"""Calls models of any kind."""

import inspect
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from accel_engine.keras_support.model_structure import fixed_batch
from accel_engine.private_names.keras_graph_names import joined_outputs, rows_of


def call_model(model: keras.Model, inputs: Any, *, training: bool) -> Any:
    """Call a model as ``fit`` does: with ``training`` only if its ``call`` takes it.

    A model that takes batches of one size only gets other numbers of examples, outside of training, in such batches:
    the last one is filled up with its last example, whose further outputs are cut off. A graph of it has to
    know the number of examples if they may be more than a batch.
    """
    parameters = inspect.signature(model.call).parameters.values()
    takes = any(each.name == "training" or each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)

    def call(inputs: Any) -> Any:
        return model(inputs, training=training) if takes else model(inputs)

    size, leaves = fixed_batch(model), keras.tree.flatten(inputs)
    examples = leaves[0].shape[0] if leaves else None
    if training or size is None or not leaves or examples == size:
        return call(inputs)
    if examples is not None and examples > size:
        parts = [keras.tree.map_structure(_rows(first, size), inputs) for first in range(0, examples, size)]
        outputs = [call_model(model, part, training=False) for part in parts]
        return keras.tree.map_structure(lambda *each: joined_outputs(each), *outputs)
    count = tf.shape(leaves[0])[0]
    tf.debugging.assert_less_equal(count, size, f"the model takes batches of {size} only")
    whole = keras.tree.map_structure(lambda array: tf.gather(array, tf.minimum(tf.range(size), count - 1)), inputs)
    return keras.tree.map_structure(lambda output: rows_of(output, lambda each: each[:count]), call(whole))


def _rows(first: int, size: int) -> Callable[[Any], Any]:
    return lambda array: array[first : first + size]
