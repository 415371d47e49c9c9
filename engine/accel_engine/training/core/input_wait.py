"""Measures how long steps wait for their batches, within a graph that takes them from a ``tf.data`` iterator."""

from collections.abc import Callable
from typing import TypeVar

import tensorflow as tf

Batch = TypeVar("Batch")


class InputWait:
    """Adds up the seconds in which a graph waits for batches, on the host."""

    def __init__(self) -> None:
        with tf.device("/CPU:0"):
            self._seconds = tf.Variable(0.0, trainable=False, dtype=tf.float64)

    def measure(self, read: Callable[[], Batch]) -> Batch:
        """Read a batch, in a graph, and add the time that it takes."""
        with tf.device("/CPU:0"):
            before = tf.timestamp()
        with tf.control_dependencies([before]):
            batch = read()
        arrays = [array for array in tf.nest.flatten(batch, expand_composites=True) if array is not None]
        with tf.control_dependencies(arrays), tf.device("/CPU:0"):
            self._seconds.assign_add(tf.timestamp() - before)
        return batch

    def take(self) -> float:
        """The seconds since the last call."""
        seconds = float(self._seconds.numpy())
        if seconds:
            self._seconds.assign(0.0)
        return seconds
