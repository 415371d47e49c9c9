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
from accel_engine.errors import DataError
from accel_engine.private_names.tensorflow_names import WORKER_EXAMPLES, register_function
from accel_engine.training.core.feed import PREFETCH


class WorkerDataMissing(Exception):  # noqa: N818 (its name is searched for in TensorFlow's messages)
    """This worker does not have the examples; why."""


class WorkerDataSource:
    """Reads batches for graphs that run in this process.

    Args:
        dataset: The examples, which graphs wait for, or the error that occurred while reading them.
        worker: This process's name, for error messages.
    """

    def __init__(self, dataset: Future[Dataset], worker: str) -> None:
        ahead = ThreadPoolExecutor(PREFETCH, "read-ahead")
        begun: dict[tuple[int, bytes], Future[npt.NDArray[Any]]] = {}

        @cache
        def splits() -> dict[int, Split]:
            read = dataset.result()
            known = {"training": read.train, "validation": read.validation}
            return {_fingerprint(split, use): split for use, split in known.items() if split is not None}

        def batch(order: npt.NDArray[np.int32], step: np.int32, fingerprint: np.int64) -> tuple[npt.NDArray[Any], ...]:
            wanted = int(fingerprint)
            try:
                split = splits().get(wanted)
            except DataError as error:
                raise WorkerDataMissing(f"{worker}: {error}") from error
            if split is None:
                raise WorkerDataMissing(f"{worker} has different data from the coordinator")
            x, y, rows = split.x, split.y, order[step]
            if isinstance(x, np.ndarray):
                return x[rows], y[rows]
            for later in order[step : step + PREFETCH]:
                if (key := (wanted, later.tobytes())) not in begun:
                    begun[key] = ahead.submit(x.take, later)
            return begun.pop((wanted, rows.tobytes())).result(), y[rows]

        self._batch = batch  # TensorFlow holds a weak reference only
        register_function(WORKER_EXAMPLES, batch)


class WorkerDataFeed:
    """Sends row numbers to the workers, which read the examples.

    Args:
        split: The coordinator's examples, which must equal the workers'.
        use: ``training`` or ``validation``.
    """

    def __init__(self, split: Split, use: str) -> None:
        self.kind = "resident" if isinstance(split.x, np.ndarray) else "streamed"
        self._shape, self._types = tuple(split.x.shape[1:]), (tf.as_dtype(split.x.dtype), tf.int32)
        self._fingerprint = _fingerprint(split, use)

    def open(self, order: Any, first: int = 0) -> tf.Tensor:
        """Return the order itself, int32 ``[steps, batch]``, to send to a worker."""
        return tf.convert_to_tensor(order)[first:, 0]

    def arguments(self, source: tf.Tensor, step: tf.Tensor) -> tuple[Any, ...]:
        """The batch of a step, read by its worker, which prefetches the next ones."""
        with tf.device("/device:CPU:0"):
            wanted = [source, step, tf.constant(self._fingerprint, tf.int64)]
            x, y = tf.raw_ops.PyFunc(input=wanted, token=WORKER_EXAMPLES, Tout=self._types)
        rows = source.shape[1]
        return tf.ensure_shape(x, (rows, *self._shape)), tf.ensure_shape(y, (rows,))

    def examples(self, x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Return the batch unchanged."""
        return x, y


def data_error(error: tf.errors.OpError) -> DataError | None:
    """The message of a worker without the examples, from TensorFlow's error; ``None`` for any other error."""
    message = re.search(rf"{WorkerDataMissing.__name__}: (.*)", str(error))
    return DataError(message[1]) if message else None


def _fingerprint(split: Split, use: str) -> int:
    """A checksum of a split's use, shape, type and labels."""
    return zlib.crc32(split.y.tobytes(), zlib.crc32(f"{use} {split.x.shape} {split.x.dtype}".encode()))
