"""Streams of batches for ``advice.py``, as ``FILE.py:FUNCTION`` of plans."""

import json
import os
import time
from collections.abc import Iterator
from itertools import count, islice
from typing import Any

import numpy as np

Batch = tuple[np.ndarray, np.ndarray]


def slow() -> Any:
    """Batches that take 20 ms each to be made."""
    return _dataset(lambda: _batches(wait=0.02))


def fast() -> Any:
    """The same without waiting."""
    return _dataset(_batches)


def slow_on_worker_1() -> Any:
    """Batches that take 50 ms each to be made by worker 1, and by the others hardly any time."""
    task = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {})
    return _dataset(lambda: _batches(wait=0.05 if task.get("index") == 1 else 0.0))


def changing() -> Any:
    """Sequences whose batches have another length each, in each epoch."""
    import tensorflow as tf

    lengths = count(8)

    def batches() -> Iterator[Batch]:
        rng = np.random.default_rng(0)
        for length in islice(lengths, 10):
            x = rng.integers(1, 50, (16, length)).astype(np.int32)
            yield x, (x[:, 0] > 25).astype(np.int32)

    spec = (tf.TensorSpec((None, None), tf.int32), tf.TensorSpec((None,), tf.int32))
    return {"train": tf.data.Dataset.from_generator(batches, output_signature=spec), "class_names": ["low", "high"]}


def _batches(wait: float = 0.0) -> Iterator[Batch]:
    rng = np.random.default_rng(0)
    for _ in range(60):
        time.sleep(wait)
        x = rng.normal(size=(32, 8)).astype(np.float32)
        yield x, (x[:, 0] + x[:, 1] > 0).astype(np.int32)


def _dataset(batches: Any) -> Any:
    import tensorflow as tf

    spec = (tf.TensorSpec((32, 8), tf.float32), tf.TensorSpec((32,), tf.int32))
    data = tf.data.Dataset.from_generator(batches, output_signature=spec)
    return {"train": data, "class_names": ["low", "high"]}
