"""Feeds the workers of a coordinator: each reads the examples itself, so that only row numbers are sent.

A worker registers a function that reads the plan's data for graphs that run on its TensorFlow server; the
coordinator's graphs call it by name.
"""

import re
import zlib
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.dataset import Dataset, Split
from accel_engine.data.structure import Batch, describe, flatten
from accel_engine.errors import DataError
from accel_engine.private_names.tensorflow_names import WORKER_EXAMPLES, register_function
from accel_engine.training.core.feed import PREFETCH, Feed, filled


class WorkerDataMissing(Exception):  # noqa: N818 (its name is searched for in TensorFlow's messages)
    """This worker does not have the examples; the message says why."""


class WorkerDataSource:
    """Reads batches for graphs that run in this process.

    Args:
        dataset: The examples, which graphs wait for, or the error that occurred while reading them.
        worker: This process's name, for error messages.
    """

    def __init__(self, dataset: Future[Dataset], worker: str) -> None:
        ahead = ThreadPoolExecutor(PREFETCH, "read-ahead")
        begun: dict[tuple[int, bytes], Future[tuple[npt.NDArray[Any], ...]]] = {}

        def read(split: Split, rows: npt.NDArray[np.int32]) -> tuple[npt.NDArray[Any], ...]:
            return tuple(flatten(split.take(rows)))

        @cache
        def splits() -> dict[int, Split]:
            read = dataset.result()
            known = {"training": read.train, "validation": read.validation}
            return {_fingerprint(split, use): split for use, split in known.items() if isinstance(split, Split)}

        def batch(order: npt.NDArray[np.int32], step: np.int32, fingerprint: np.int64) -> tuple[npt.NDArray[Any], ...]:
            wanted = int(fingerprint)
            try:
                split = splits().get(wanted)
            except DataError as error:
                raise WorkerDataMissing(f"{worker}: {error}") from error
            if split is None:
                raise WorkerDataMissing(f"{worker} has different data from the coordinator")
            rows = order[step]
            if split.in_memory:
                return read(split, rows)
            for later in order[step : step + PREFETCH]:
                if (key := (wanted, later.tobytes())) not in begun:
                    begun[key] = ahead.submit(read, split, later)
            return begun.pop((wanted, rows.tobytes())).result()

        self._batch = batch  # TensorFlow holds a weak reference only
        register_function(WORKER_EXAMPLES, batch)


class WorkerDataFeed(Feed):
    """Sends row numbers to the workers, which read the examples.

    Args:
        split: The coordinator's examples, which must equal the workers'.
        use: ``training`` or ``validation``.
    """

    can_slice = False

    def __init__(self, split: Split, use: str) -> None:
        self.kind = "resident" if split.in_memory else "streamed"
        self._split = split
        self._fingerprint = _fingerprint(split, use)

    def open(self, order: Any, first: int = 0) -> tf.Tensor:
        """Return the order itself, int32 ``[steps, batch]``, to send to a worker."""
        return tf.convert_to_tensor(order)[first:, 0]

    def arguments(self, source: tf.Tensor, step: tf.Tensor) -> tuple[Any, ...]:
        """The batch of a step, read by its worker, which prefetches the next ones."""
        arrays = self._split.arrays
        with tf.device("/device:CPU:0"):
            wanted = [source, step, tf.constant(self._fingerprint, tf.int64)]
            types = [tf.string if array.dtype.kind in "OUS" else tf.as_dtype(array.dtype) for array in arrays]
            values = tf.raw_ops.PyFunc(input=wanted, token=WORKER_EXAMPLES, Tout=types)
        shaped = (
            tf.ensure_shape(value, (source.shape[1], *array.shape[1:]))
            for value, array in zip(values, arrays, strict=True)
        )
        return (filled(self._split.batch, shaped),)

    def examples(self, batch: Batch) -> Batch:
        """Return the batch unchanged."""
        return batch


def data_error(error: tf.errors.OpError) -> DataError | None:
    """The message of a worker without the examples, from TensorFlow's error; ``None`` for any other error."""
    message = re.search(rf"{WorkerDataMissing.__name__}: (.*)", str(error))
    return DataError(message[1]) if message else None


def _fingerprint(split: Split, use: str) -> int:
    """A checksum of a split's use, length, shapes and types, and of its targets in memory, or else its first array."""
    checksum = zlib.crc32(f"{use} {len(split)} {describe(split.spec)}".encode())
    known = [array for array in flatten(split.targets) if isinstance(array, np.ndarray)]
    for array in known or [array for array in split.arrays if isinstance(array, np.ndarray)][:1]:
        checksum = zlib.crc32(array.astype("S").tobytes() if array.dtype.kind in "OU" else array.tobytes(), checksum)
    return checksum
