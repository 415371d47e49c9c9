"""Puts the operations of an update beside the weights and gradients that they read."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow as tf


@contextmanager
def beside_largest_input() -> Iterator[None]:
    """Put each operation that is added inside the ``with`` block on the device of its largest input; in a graph.

    TensorFlow would put an optimizer's arithmetic on the first device, and send all weights there and back.
    """
    with tf.compat.v1.device(_device_of_largest_input):
        yield


def _device_of_largest_input(operation: Any) -> str:
    found = [(_size(tensor), device) for tensor in operation.inputs if (device := _device(tensor))]
    return max(found, key=lambda each: each[0])[1] if found and not operation.device else ""


def _size(tensor: Any) -> float:
    if tensor.dtype == tf.resource:
        return math.inf  # an operation on a variable cannot be elsewhere
    return math.prod(side or 1 for side in tensor.shape.as_list()) if tensor.shape.rank is not None else 1


def _device(tensor: Any) -> str:
    """The device of a tensor, also of one that an inner graph, such as a branch, takes from outside."""
    while not tensor.device and hasattr(tensor, "graph") and hasattr(tensor.graph, "captures"):
        outer = next((outer for outer, inner in tensor.graph.captures if inner is tensor), None)
        if outer is None:
            return ""
        tensor = outer
    return str(tensor.device)
