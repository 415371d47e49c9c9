"""Measures the activations that a model saves for its backward pass, layer by layer, in a traced graph.

The outputs of layers do not tell: batch normalization does not save its outputs, an attention saves its scores, a
recurrent layer saves several values of each time step. So the gradients of a small batch are traced, without running
them: what an operation of the backward pass reads of the forward pass is saved.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from accel_engine.data.structure import ArraySpec, Structure, flatten, map_structure
from accel_engine.models.model_call import call_model
from accel_engine.op_profile.op_names import innermost_mark
from accel_engine.private_names.tensorflow_names import function_graph
from accel_engine.training.model_analysis.layer_table import mark_layers, number_layers

BATCH = 2
"""Examples of the traced batch: some layers do not take a single one."""

_SAME_MEMORY = ("Reshape", "Identity", "ExpandDims", "Squeeze", "StopGradient", "PreventGradient")
"""Operations whose output shares the memory of their first input."""

_WITHOUT_MEMORY = ("ReadVariableOp", "VarHandleOp", "Const")
"""Operations whose outputs take no memory, or do not grow with the batch."""

_LOOPS = ("While", "StatelessWhile")

_LENGTHS = ("TensorListFromTensor", "TensorListReserve")
"""Operations that make a list of tensors: of one tensor, or of a given length."""


@dataclass(frozen=True, slots=True)
class LayerActivations:
    """The activations of a layer for one example, in float32."""

    saved: int
    """Bytes that the backward pass reads."""
    output: int = 0
    """Bytes of the layer's output, or of the largest integer tensor that it computes, such as counts of words, if that
    is larger; 0 if both are unknown."""

    @property
    def largest(self) -> int:
        """Bytes of the layer's largest activation, whose gradient the backward pass computes, at most."""
        return max(self.saved, self.output)


def trace_activations(model: keras.Model, inputs: Structure) -> tuple[tuple[LayerActivations, ...], int]:
    """Trace the gradients of a model in the current graph.

    Args:
        model: The model, whose variables the current graph can read.
        inputs: The :class:`~accel_engine.data.structure.ArraySpec` of every input of an example.

    Returns:
        The activations of each layer, in the order of the model; last the activations of no layer, such as the batch.
        The number of operations.
    """
    graph = tf.compat.v1.get_default_graph()
    earlier = set(graph.get_operations())
    with mark_layers(model):
        outputs = call_model(model, map_structure(_placeholder, inputs), training=True)
        loss = tf.add_n([_mean_square(output) for output in flatten(outputs)])
    forward = set(graph.get_operations()) - earlier
    # Not with a tape, which initializes TensorFlow's devices.
    gradients = tf.gradients(loss, [variable.value for variable in model.trainable_variables])
    backward = _backward(gradients, forward | earlier)
    return _by_layer(model, _saved(forward, backward), forward), _count([*forward, *backward])


def output_sizes(model: Any) -> Iterator[int]:
    """Bytes of the output of each layer for one example, also in nested models; nothing for a subclassed model."""
    for operation in getattr(model, "operations", model.layers):
        if isinstance(operation, keras.Model):
            yield from output_sizes(operation)
        else:
            yield _output_size(operation)


def _placeholder(spec: ArraySpec) -> tf.Tensor:
    """A batch as the model gets it: pixels are scaled to float32; a dimension of any size counts as 1."""
    dtype = "float32" if spec.dtype.startswith("uint") else spec.dtype
    return tf.compat.v1.placeholder(dtype, (BATCH, *(side or 1 for side in spec.shape)))


def _mean_square(output: tf.Tensor) -> tf.Tensor:
    return tf.reduce_mean(tf.square(tf.cast(output, tf.float32)))


def _backward(gradients: Sequence[Any], before: set[tf.Operation]) -> set[tf.Operation]:
    """The operations that some gradients depend on. TensorFlow prunes others, such as gradients of frozen layers.

    Args:
        gradients: Tensors, ``tf.IndexedSlices``, or ``None`` for weights without a gradient.
        before: The operations of the forward pass.
    """
    tensors = tf.nest.flatten([gradient for gradient in gradients if gradient is not None], expand_composites=True)
    needed: set[tf.Operation] = set()
    waiting = [tensor.op for tensor in tensors]
    while waiting:
        operation = waiting.pop()
        if operation not in needed and operation not in before:
            needed.add(operation)
            waiting += [*(tensor.op for tensor in operation.inputs), *operation.control_inputs]
    return needed


def _saved(forward: set[tf.Operation], backward: Iterable[tf.Operation]) -> dict[tf.Operation, dict[int, tf.Tensor]]:
    """The tensors of the forward pass that the backward pass reads, once each."""
    saved: dict[tf.Operation, dict[int, tf.Tensor]] = {}
    for operation in backward:
        for tensor in operation.inputs:
            if tensor.op in forward and (owner := _owner(tensor)).op.type not in _WITHOUT_MEMORY:
                saved.setdefault(owner.op, {})[owner.value_index] = owner
    return saved


def _owner(tensor: tf.Tensor) -> tf.Tensor:
    """The tensor whose memory this one shares, as far as its size is known."""
    while tensor.op.type in _SAME_MEMORY and (_size(tensor.op.inputs[0]) or not _size(tensor)):
        tensor = tensor.op.inputs[0]
    return tensor


def _count(operations: Sequence[tf.Operation]) -> int:
    """The number of operations, also within loops."""
    bodies = (function_graph(each.graph, each.get_attr("body").name) for each in operations if each.type in _LOOPS)
    return len(operations) + sum(len(body.get_operations()) for body in bodies if body is not None)


def _by_layer(
    model: keras.Model, saved: dict[tf.Operation, dict[int, tf.Tensor]], forward: Iterable[tf.Operation]
) -> tuple[LayerActivations, ...]:
    numbers = number_layers(model)
    sizes, whole = Counter[int](), _whole_numbers(forward)
    for operation, tensors in saved.items():
        mark = innermost_mark(operation.name)
        sizes[len(numbers) if mark is None else mark] += _bytes(operation, tensors)
    layers = [
        LayerActivations(sizes[number] // BATCH, max(_output_size(layer), whole[number] // BATCH))
        for layer, number in numbers.items()
    ]
    return (*layers, LayerActivations(sizes[len(numbers)] // BATCH))


def _whole_numbers(forward: Iterable[tf.Operation]) -> Counter[int]:
    """Bytes of the largest tensor of whole numbers that each layer computes, by its mark."""
    largest = Counter[int]()
    for operation in forward:
        if operation.type not in _WITHOUT_MEMORY and (mark := innermost_mark(operation.name)) is not None:
            sizes = [_size(tensor) for tensor in operation.outputs if tensor.dtype.is_integer]
            largest[mark] = max([largest[mark], *sizes])
    return largest


def _bytes(operation: tf.Operation, tensors: dict[int, tf.Tensor]) -> int:
    """Bytes that some outputs of an operation take."""
    total = sum(_size(tensor) for tensor in tensors.values())
    return total + (_bytes_of_steps(operation) if operation.type in _LOOPS else 0)


def _size(tensor: tf.Tensor) -> int:
    """Bytes of a tensor; 0 for lists and resources, and if its shape is not static.

    A first dimension that is not static is the batch's: layers of texts do not keep its size.
    """
    if tensor.dtype in (tf.variant, tf.resource, tf.string) or tensor.shape.rank is None:
        return 0
    first, *others = tensor.shape.as_list() or [1]
    return 0 if None in others else int(math.prod((first or BATCH, *others)) * tensor.dtype.size)


def _bytes_of_steps(loop: tf.Operation) -> int:
    """Bytes that a loop, such as a recurrent layer's, saves of all its steps: it adds them to lists."""
    body = function_graph(loop.graph, loop.get_attr("body").name)
    if body is None:
        return 0
    added = [each.inputs[1] for each in body.get_operations() if each.type == "TensorListPushBack"]
    step = sum(_size(tensor) for tensor in added if _owner(tensor).op.type not in _WITHOUT_MEMORY)
    lengths = (_length(tensor.op) for tensor in loop.inputs if tensor.op.type in _LENGTHS)
    return int(step * max(lengths, default=1))


def _length(made: tf.Operation) -> int:
    """The length of a list of tensors: 1 if it is not static."""
    length = made.inputs[0].shape[0] if made.type == _LENGTHS[0] else tf.get_static_value(made.inputs[1])
    return 1 if length is None else int(length)


def _output_size(layer: Any) -> int:
    """Bytes of a layer's output for one example in float32; 0 if it is unknown before a call."""
    outputs = keras.tree.flatten(getattr(layer, "output", ()))
    return sum(4 * math.prod(side or 1 for side in tensor.shape[1:]) for tensor in outputs)
