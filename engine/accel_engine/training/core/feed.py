"""Feeds batches to the replicas: from a dataset cached on every device, or streamed from the host.

Both give the same batches for the same seed: the order of an epoch is a permutation that depends on the seed and the
epoch only, so a step's examples follow from its number.
"""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import psutil
import tensorflow as tf

from accel_engine.data.dataset import Split

CACHE_SHARE = 0.25
"""Share of a device's memory, or of the host's available memory, that a cached split may take."""

PREFETCH = 4
"""Batches that a streamed feed prefetches."""

MAX_ROWS = 1 << 20
"""Row numbers that are generated at a time, unless one pass over the data has more."""


class Feed(Protocol):
    """Source of a compiled loop's batches.

    A loop calls :meth:`open` on the host. In the graph, for every step, it calls :meth:`arguments` in the cross-replica
    context and :meth:`examples` in each replica's.
    """

    kind: str

    def open(self, order: npt.NDArray[np.int32], first: int = 0) -> Any:
        """Open a source of batches in this order, ``[steps, replicas, per_replica_batch]``, starting at a step."""

    def arguments(self, source: Any, step: tf.Tensor) -> tuple[Any, ...]:
        """The arguments of :meth:`examples` for the step at this index of the order."""

    def examples(self, *arguments: Any) -> tuple[tf.Tensor, tf.Tensor]:
        """A replica's raw examples, ``[per_replica_batch, ...]``, and sparse labels, int32 ``[per_replica_batch]``."""


class CachedFeed:
    """Caches the whole split on every replica's device; a step sends row numbers only.

    Args:
        strategy: The strategy that the loop runs under.
        split: The examples.
    """

    kind = "resident"

    def __init__(self, strategy: tf.distribute.Strategy, split: Split) -> None:
        self._x, self._y = (_copy_to_devices(strategy, np.asarray(values)) for values in (split.x, split.y))

    def open(self, order: npt.NDArray[np.int32], first: int = 0) -> tf.Tensor:
        """Copy the order to the device."""
        del first
        return tf.constant(order)

    def arguments(self, source: tf.Tensor, step: tf.Tensor) -> tuple[Any, ...]:
        """The cached arrays and the row numbers of the step."""
        return self._x, self._y, source[step]

    def examples(self, x: tf.Tensor, y: tf.Tensor, indices: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Gather this replica's rows."""
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        own = indices[replica]
        return tf.gather(x, own), tf.gather(y, own)


class StreamedFeed:
    """Reads batches on the host with ``tf.data`` and prefetches them.

    Args:
        strategy: The strategy that the loop runs under.
        split: The examples; ``split.x`` may be read lazily.
        portable: Whether examples in memory become part of the pipeline, so that it can run on another host, such as a
            TPU's.
    """

    kind = "streamed"

    def __init__(self, strategy: tf.distribute.Strategy, split: Split, *, portable: bool = False) -> None:
        self._strategy = strategy
        self._split = split
        self._constant = tf.constant(split.x) if portable and isinstance(split.x, np.ndarray) else None
        self._labels = tf.constant(split.y)

    def open(self, order: npt.NDArray[np.int32], first: int = 0) -> Any:
        """Create an iterator over the batches of the order, starting at step ``first``."""

        def pipeline(context: tf.distribute.InputContext) -> tf.data.Dataset:
            # Each replica of a worker takes the next element of the worker's pipeline in turn.
            replicas = order.shape[1] // context.num_input_pipelines
            own = slice(context.input_pipeline_id * replicas, (context.input_pipeline_id + 1) * replicas)
            return self._batches(order[first:, own])

        return iter(self._strategy.distribute_datasets_from_function(pipeline))

    def _batches(self, order: npt.NDArray[np.int32]) -> tf.data.Dataset:
        """The batches of an order, replica after replica."""
        x, labels = self._split.x, self._labels
        take = x.__getitem__ if isinstance(x, np.ndarray) else x.take
        shape, dtype = tuple(x.shape[1:]), tf.as_dtype(x.dtype)

        def read(rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            if self._constant is not None:
                return tf.gather(self._constant, rows), tf.gather(labels, rows)
            examples = tf.numpy_function(take, [rows], dtype)
            return tf.ensure_shape(examples, (rows.shape[0], *shape)), tf.gather(labels, rows)

        return (
            tf.data.Dataset.from_tensor_slices(order.reshape(-1, order.shape[2]))
            .map(read, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
            .prefetch(PREFETCH * order.shape[1])
        )

    def arguments(self, source: Any, step: tf.Tensor) -> tuple[Any, ...]:
        """The pipeline's next batch."""
        del step
        batch: tuple[Any, ...] = source.get_next()
        return batch

    def examples(self, x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Return the batch unchanged."""
        return x, y


def choose_feed(strategy: tf.distribute.Strategy, split: Split, device_memory: int | None) -> Feed:
    """Cache the examples on the devices if they fit; stream them otherwise.

    Args:
        strategy: The strategy that the loop runs under.
        split: The examples.
        device_memory: Memory of each device in bytes; ``None`` for host memory, 0 for a TPU.
    """
    if device_memory == 0:
        return StreamedFeed(strategy, split, portable=True)
    replicas = strategy.num_replicas_in_sync
    free = psutil.virtual_memory().available / replicas if device_memory is None else device_memory
    if isinstance(split.x, np.ndarray) and split.x.nbytes <= CACHE_SHARE * free:
        return CachedFeed(strategy, split)
    return StreamedFeed(strategy, split)


def epoch_segment(step: int, examples: int, steps: int, batch: int) -> range:
    """The range of an epoch's steps around one whose order is generated at a time: all, unless they are very many.

    Args:
        step: The step, counted from 0.
        examples: Number of examples.
        steps: Steps of the epoch.
        batch: The global batch.
    """
    per_pass = examples // batch
    length = per_pass * max(1, MAX_ROWS // (per_pass * batch))
    first = step // length * length
    return range(first, min(first + length, steps))


def epoch_order(
    seed: int, epoch: int, examples: int, steps: int, replicas: int, batch: int, first: int = 0
) -> npt.NDArray[np.int32]:
    """The row numbers of every step of an epoch, or of a part of it.

    Every example comes once before any comes again. An epoch with more steps than the data has batches starts another
    pass over the data, in another order.

    Args:
        seed: The plan's seed.
        epoch: The epoch, counted from 0.
        examples: Number of examples.
        steps: Number of steps.
        replicas: Number of replicas.
        batch: The per-replica batch.
        first: The first step; a pass over the data starts with it.

    Returns:
        Row numbers, int32 ``[steps, replicas, batch]``.
    """
    per_pass = examples // (replicas * batch)
    passes = [
        np.random.default_rng([seed, epoch, number]).permutation(examples)[: per_pass * replicas * batch]
        for number in range(first // per_pass, -(-(first + steps) // per_pass))
    ]
    rows = np.concatenate(passes)[: steps * replicas * batch].astype(np.int32)
    return rows.reshape(steps, replicas, batch)


def _copy_to_devices(strategy: tf.distribute.Strategy, values: npt.NDArray[Any]) -> Any:
    if strategy.num_replicas_in_sync == 1:
        with strategy.scope():
            return tf.constant(values)
    devices = strategy.extended.worker_devices  # of this worker

    def place(context: tf.distribute.experimental.ValueContext) -> tf.Tensor:
        with tf.device(devices[context.replica_id_in_sync_group % len(devices)]):
            return tf.constant(values)

    return strategy.experimental_distribute_values_from_function(place)
