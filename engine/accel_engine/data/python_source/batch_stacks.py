"""Stacks batches of a ``tf.data`` iterator in a graph, which takes less time than one by one in Python."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from accel_engine.data.python_source.freed_iterator import FreedIterator
from accel_engine.data.structure import flatten

SECONDS = 0.05
"""About how long batches are collected for a stack."""


class BatchStacks:
    """Reads iterators of a dataset in stacks of batches of equal shapes.

    Args:
        spec: The ``element_spec`` of the ``tf.data.Dataset``.
    """

    def __init__(self, spec: Any) -> None:
        self._spec = spec
        self._take = tf.function(self._stack, autograph=False)

    def read(self, iterator: FreedIterator, wanted: Callable[[], int]) -> Iterator[tuple[Any, int, int]]:
        """Yield stacks of at most as many batches as are wanted, their numbers, and how many were drawn in all.

        One of those drawn may wait for the next stack.
        """
        with tf.device("/CPU:0"):
            waiting, most = iterator.inner.get_next_as_optional(), 1
        drawn = int(waiting.has_value())
        while waiting.has_value():
            began = time.monotonic()
            with tf.device("/CPU:0"):
                stack, count, waiting = self._take(iterator.inner, waiting, tf.constant(max(1, min(wanted(), most))))
            number = int(count)
            drawn += number - 1 + int(waiting.has_value())
            rate = number / max(time.monotonic() - began, 1e-6)
            most = max(1, min(int(rate * SECONDS), 4 * most))
            yield stack, number, drawn

    def _stack(self, iterator: Any, first: Any, count: tf.Tensor) -> tuple[Any, tf.Tensor, Any]:
        """A stack that begins with a batch, its number of batches, and the batch that follows."""
        shapes = [tf.shape(each) for each in flatten(first.get_value())]
        fixed = all(spec.shape.is_fully_defined() for spec in flatten(self._spec))

        def fits(optional: Any) -> tf.Tensor:
            if fixed:
                return optional.has_value()

            def same() -> tf.Tensor:
                own = [tf.shape(each) for each in flatten(optional.get_value())]
                return tf.reduce_all([tf.reduce_all(a == b) for a, b in zip(own, shapes, strict=True)])

            return tf.cond(optional.has_value(), same, lambda: False)

        def step(index: tf.Tensor, arrays: list[Any], optional: Any) -> tuple[Any, ...]:
            values = flatten(optional.get_value())
            written = [array.write(index, value) for array, value in zip(arrays, values, strict=True)]
            return index + 1, written, iterator.get_next_as_optional()

        empty = [
            tf.TensorArray(spec.dtype, count, dynamic_size=True, element_shape=spec.shape, infer_shape=False)
            for spec in flatten(self._spec)
        ]
        number, arrays, following = tf.while_loop(
            lambda index, _, optional: (index < count) & fits(optional), step, (tf.constant(0), empty, first)
        )
        stacked = iter(array.gather(tf.range(number)) for array in arrays)
        return tf.nest.map_structure(lambda _: next(stacked), self._spec), number, following
