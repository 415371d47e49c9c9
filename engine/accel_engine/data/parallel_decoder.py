"""Decodes many files or records in parallel, in TensorFlow's threads."""

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.untuned import untuned

Decode: TypeAlias = Callable[[tf.Tensor], Any]
"""Decodes one element, a scalar string, to a tensor or a flat tuple of tensors with shapes that are known."""

THREADS = max(8, os.cpu_count() or 1)
"""Number of elements decoded in parallel: at least 8, as reading files waits for disks."""


class ParallelDecoder:
    """Decodes elements, such as paths of files, to arrays.

    Args:
        decode: Decodes one element in a graph.
    """

    def __init__(self, decode: Decode) -> None:
        def decode_all(elements: tf.Tensor) -> Any:
            count = tf.size(elements, out_type=tf.int64)
            options = tf.data.Options()
            # Threads of its own, so that reading does not wait for training and the other way round.
            options.threading.private_threadpool_size = THREADS
            decoded = (
                tf.data.Dataset.from_tensor_slices((tf.range(count), elements))
                .map(lambda row, each: (row, decode(each)), num_parallel_calls=THREADS, deterministic=False)
                .ignore_errors()
                .batch(tf.maximum(count, 1))
                .with_options(options)
            )
            return untuned(decoded).get_single_element()

        with tf.device("/CPU:0"):
            self._decode_all = tf.function(decode_all).get_concrete_function(tf.TensorSpec([None], tf.string))

    def __call__(self, elements: Sequence[str | bytes]) -> tuple[npt.NDArray[np.int64], tuple[npt.NDArray[Any], ...]]:
        """Decode elements.

        Returns:
            The positions of those that could be decoded, in any order, and the arrays of their values in that order;
            no arrays if none could be decoded.
        """
        nothing = np.zeros(0, np.int64)
        if not elements:
            return nothing, ()
        with tf.device("/CPU:0"):
            try:
                rows, values = self._decode_all(tf.constant(elements, tf.string))
            except tf.errors.InvalidArgumentError:  # not a single element was left
                return nothing, ()
        return rows.numpy(), tuple(each.numpy() for each in tf.nest.flatten(values))
