"""Runs a layer's training step with the fast kernels for CPUs or with Keras' own, and inspects its graph."""

from contextlib import nullcontext
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from accel_engine.training.layer_kernels import CPU_KERNELS, use_fast_kernels


def graph_of(layer: keras.Layer, shape: tuple[int | None, ...], *, xla: bool = False, **options: Any) -> Any:
    """A layer's step with the fast kernel, if there is one; with ``xla``, with Keras' own."""
    step = tf.function(lambda x: _learn(layer, x, 1.0, **options))
    with nullcontext() if xla else use_fast_kernels(layer, CPU_KERNELS):
        return step.get_concrete_function(tf.TensorSpec(shape, layer.compute_dtype)).graph


def step_of(layer: keras.Layer, x: np.ndarray, weights: np.ndarray) -> tuple[Any, list[np.ndarray]]:
    """The graph of a step, and the outputs, gradients and variables that it computes."""
    step = tf.function(lambda x: _learn(layer, x, weights, training=True))
    function = step.get_concrete_function(tf.TensorSpec(x.shape, layer.compute_dtype))
    values = function(tf.cast(x, layer.compute_dtype))
    return function.graph, [np.asarray(value) for value in (*values, *layer.non_trainable_variables)]


def _learn(layer: keras.Layer, x: tf.Tensor, weights: np.ndarray | float, **options: Any) -> list[tf.Tensor]:
    """Outputs, and gradients of the input and the variables."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        outputs = layer(x, **options)
        loss = tf.reduce_sum(tf.cast(outputs, tf.float32) * weights)
    wanted = [x, *(variable.value for variable in layer.trainable_variables)]
    return [tf.cast(value, tf.float32) for value in (outputs, *tape.gradient(loss, wanted))]


def operations(graph: Any) -> list[Any]:
    """All operations of a graph and of its functions."""
    definition = graph.as_graph_def()
    bodies = [definition.node, *(function.node_def for function in definition.library.function)]
    return [node for body in bodies for node in body]


def kinds(graph: Any) -> set[str]:
    """The types of all operations of a graph and of its functions."""
    return {node.op for node in operations(graph)}


def apart(graph: Any) -> bool:
    """Whether the gradients of a convolution's filters and bias are computed from different tensors."""
    nodes = operations(graph)
    filters = {node.input[2] for node in nodes if node.op == "Conv2DBackpropFilter"}
    return bool(filters) and filters.isdisjoint(node.input[0] for node in nodes if node.op == "BiasAddGrad")
