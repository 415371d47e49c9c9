"""Examples that every worker of a coordinator reads by itself, so that only row numbers travel.

A worker offers the plan's data under a name to all graphs that run on its TensorFlow server; the
coordinator's graphs ask for rows by that name, wherever they run.
"""

import re
import zlib
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from tensorflow.python.ops import script_ops

from accel_engine.data.dataset import Dataset, Split
from accel_engine.errors import DataError
from accel_engine.training.feed import PREFETCH

_NAME = "accel_tui_training_examples"


class WorkerDataMissing(Exception):  # noqa: N818 (a refusal)
    """This process cannot give the examples; why."""


class WorkerDataSource:
    """Gives the batches of an order to graphs that run in this process, as long as it lives.

    Args:
        dataset: The examples, once they are read, for which a graph waits; or why they cannot be.
        who: This process, for when there is something to say.
    """

    def __init__(self, dataset: Future[Dataset], who: str) -> None:
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
                raise WorkerDataMissing(f"{who}: {error}") from error
            if split is None:
                raise WorkerDataMissing(f"{who} has other data than the coordinator: all need the same")
            x, y, rows = split.x, split.y, order[step]
            if isinstance(x, np.ndarray):
                return x[rows], y[rows]
            for later in order[step : step + PREFETCH]:
                if (key := (wanted, later.tobytes())) not in begun:
                    begun[key] = ahead.submit(x.take, later)
            return begun.pop((wanted, rows.tobytes())).result(), y[rows]

        # TensorFlow numbers such functions, in each process by itself, and holds none of them.
        self._batch = script_ops._py_funcs._funcs[_NAME] = batch  # noqa: SLF001


class WorkerDataFeed:
    """Workers read the examples, and are sent their row numbers.

    Args:
        split: The examples as the coordinator has them, which have to be those of the workers.
        use: What they are for: ``training`` or ``validation``.
    """

    def __init__(self, split: Split, use: str) -> None:
        self.kind = "resident" if isinstance(split.x, np.ndarray) else "streamed"
        self._shape, self._types = tuple(split.x.shape[1:]), (tf.as_dtype(split.x.dtype), tf.int32)
        self._fingerprint = _fingerprint(split, use)

    def open(self, order: Any, first: int = 0) -> tf.Tensor:
        """Nothing to begin here: a worker is given the order itself, int32 ``[steps, batch]``."""
        return tf.convert_to_tensor(order)[first:, 0]

    def arguments(self, source: tf.Tensor, step: tf.Tensor) -> tuple[Any, ...]:
        """The batch of a step, which its worker reads, and begins to read those after it."""
        with tf.device("/device:CPU:0"):
            wanted = [source, step, tf.constant(self._fingerprint, tf.int64)]
            x, y = tf.raw_ops.PyFunc(input=wanted, token=_NAME, Tout=self._types)
        rows = source.shape[1]
        return tf.ensure_shape(x, (rows, *self._shape)), tf.ensure_shape(y, (rows,))

    def examples(self, x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The batch as it came."""
        return x, y


def reads_examples(operation: tf.Operation) -> bool:
    """Whether an operation of a graph is one that asks a worker for examples."""
    kind: str = operation.type
    return kind == "PyFunc" and bool(operation.get_attr("token") == _NAME.encode())


def refusal(error: tf.errors.OpError) -> DataError | None:
    """What a worker said that could not give examples, among TensorFlow's own words; ``None`` if that is not why."""
    said = re.search(rf"{WorkerDataMissing.__name__}: (.*)", str(error))
    return DataError(said[1]) if said else None


def _fingerprint(split: Split, use: str) -> int:
    """What tells two readings of data apart that differ in their use, number, shape or labels."""
    return zlib.crc32(split.y.tobytes(), zlib.crc32(f"{use} {split.x.shape} {split.x.dtype}".encode()))
