"""How examples reach the replicas: resident on every device, or streamed from the host.

Both give the same batches for the same seed: the order of an epoch is a permutation that depends
on the seed and the epoch alone, so that a step's examples are known from its number.
"""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import psutil
import tensorflow as tf

from accel_engine.data.dataset import Split

RESIDENT_SHARE = 0.25
"""Share of a device's memory that a resident split may take; of the host's, of what is free."""

PREFETCH = 4
"""Batches that a streamed feed prepares ahead."""

MOST_ROWS = 1 << 20
"""Row numbers that are laid out at a time, unless one pass over the data has more."""


class Feed(Protocol):
    """Where a compiled loop gets its batches from.

    A loop asks :meth:`open` on the host for something to read from; in the graph, for every step,
    :meth:`arguments` outside of the replicas and :meth:`examples` inside of each.
    """

    kind: str

    def open(self, order: npt.NDArray[np.int32], first: int = 0) -> Any:
        """Begin to read batches in this order, ``[steps, replicas, per_replica_batch]``, from a step on."""

    def arguments(self, source: Any, step: tf.Tensor) -> tuple[Any, ...]:
        """What to hand each replica for the step at this index of the order."""

    def examples(self, *arguments: Any) -> tuple[tf.Tensor, tf.Tensor]:
        """A replica's raw examples, ``[per_replica_batch, ...]``, and sparse labels, int32 ``[per_replica_batch]``."""


class ResidentFeed:
    """The whole split lies on every replica's device; a step sends indices only.

    Args:
        strategy: The strategy that the loop runs under.
        split: The examples.
    """

    kind = "resident"

    def __init__(self, strategy: tf.distribute.Strategy, split: Split) -> None:
        self._x, self._y = (_on_every_device(strategy, np.asarray(values)) for values in (split.x, split.y))

    def open(self, order: npt.NDArray[np.int32], first: int = 0) -> tf.Tensor:
        """Send the order to the device; a step finds its place in it by its number."""
        del first
        return tf.constant(order)

    def arguments(self, source: tf.Tensor, step: tf.Tensor) -> tuple[Any, ...]:
        """The resident arrays and the indices of the step's examples."""
        return self._x, self._y, source[step]

    def examples(self, x: tf.Tensor, y: tf.Tensor, indices: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Gather this replica's rows."""
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        mine = indices[replica]
        return tf.gather(x, mine), tf.gather(y, mine)


class StreamedFeed:
    """A ``tf.data`` pipeline reads batches on the host and sends them ahead of their step.

    Args:
        strategy: The strategy that the loop runs under.
        split: The examples; ``split.x`` may be read lazily.
        portable: Whether examples in memory are made part of the pipeline, which then needs nothing of this
            process: the host of a TPU may be another.
    """

    kind = "streamed"

    def __init__(self, strategy: tf.distribute.Strategy, split: Split, *, portable: bool = False) -> None:
        self._strategy = strategy
        self._split = split
        self._sent = tf.constant(split.x) if portable and isinstance(split.x, np.ndarray) else None
        self._labels = tf.constant(split.y)

    def open(self, order: npt.NDArray[np.int32], first: int = 0) -> Any:
        """Begin a pipeline that reads the steps of the order from ``first`` on."""

        def pipeline(context: tf.distribute.InputContext) -> tf.data.Dataset:
            # A worker's replicas take turns: each takes the next element of its worker's pipeline.
            replicas = order.shape[1] // context.num_input_pipelines
            mine = slice(context.input_pipeline_id * replicas, (context.input_pipeline_id + 1) * replicas)
            return self._batches(order[first:, mine])

        return iter(self._strategy.distribute_datasets_from_function(pipeline))

    def _batches(self, order: npt.NDArray[np.int32]) -> tf.data.Dataset:
        """The batches of an order, one replica's after the other's."""
        x, labels = self._split.x, self._labels
        take = x.__getitem__ if isinstance(x, np.ndarray) else x.take
        shape, dtype = tuple(x.shape[1:]), tf.as_dtype(x.dtype)

        def read(rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            if self._sent is not None:
                return tf.gather(self._sent, rows), tf.gather(labels, rows)
            examples = tf.numpy_function(take, [rows], dtype)
            return tf.ensure_shape(examples, (rows.shape[0], *shape)), tf.gather(labels, rows)

        return (
            tf.data.Dataset.from_tensor_slices(order.reshape(-1, order.shape[2]))
            .map(read, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
            .prefetch(PREFETCH * order.shape[1])
        )

    def arguments(self, source: Any, step: tf.Tensor) -> tuple[Any, ...]:
        """The next batch; the pipeline knows the order."""
        del step
        batch: tuple[Any, ...] = source.get_next()
        return batch

    def examples(self, x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The batch as it came."""
        return x, y


def choose_feed(strategy: tf.distribute.Strategy, split: Split, device_memory: int | None) -> Feed:
    """Keep the examples on the devices when they fit, else stream them.

    Args:
        strategy: The strategy that the loop runs under.
        split: The examples.
        device_memory: Memory of each device in bytes; ``None`` for the host's own, 0 for a TPU.
    """
    if device_memory == 0:
        return StreamedFeed(strategy, split, portable=True)
    replicas = strategy.num_replicas_in_sync
    free = psutil.virtual_memory().available / replicas if device_memory is None else device_memory
    if isinstance(split.x, np.ndarray) and split.x.nbytes <= RESIDENT_SHARE * free:
        return ResidentFeed(strategy, split)
    return StreamedFeed(strategy, split)


def epoch_part(step: int, examples: int, steps: int, batch: int) -> range:
    """The steps of an epoch whose order is laid out together with that of one: all of them, unless they are very many.

    Args:
        step: The one, counted from 0.
        examples: Number of examples.
        steps: Steps of the epoch.
        batch: Examples a step on all replicas.
    """
    per_pass = examples // batch
    length = per_pass * max(1, MOST_ROWS // (per_pass * batch))
    first = step // length * length
    return range(first, min(first + length, steps))


def epoch_order(
    seed: int, epoch: int, examples: int, steps: int, replicas: int, batch: int, first: int = 0
) -> npt.NDArray[np.int32]:
    """The examples of every step of an epoch, or of a part of it.

    Every example comes once before any comes again; when an epoch has more steps than the data has
    batches, the data is gone over again in another order.

    Args:
        seed: The plan's.
        epoch: Counted from 0.
        examples: Number of examples.
        steps: How many.
        replicas: Number of replicas.
        batch: Examples a step on each replica.
        first: The first of them; with it a pass over the data begins.

    Returns:
        Row numbers, int32 ``[steps, replicas, batch]``.
    """
    per_pass = examples // (replicas * batch)
    passes = [
        np.random.default_rng([seed, epoch, turn]).permutation(examples)[: per_pass * replicas * batch]
        for turn in range(first // per_pass, -(-(first + steps) // per_pass))
    ]
    rows = np.concatenate(passes)[: steps * replicas * batch].astype(np.int32)
    return rows.reshape(steps, replicas, batch)


def _on_every_device(strategy: tf.distribute.Strategy, values: npt.NDArray[Any]) -> Any:
    if strategy.num_replicas_in_sync == 1:
        with strategy.scope():
            return tf.constant(values)
    devices = strategy.extended.worker_devices  # this worker's own

    def place(context: tf.distribute.experimental.ValueContext) -> tf.Tensor:
        with tf.device(devices[context.replica_id_in_sync_group % len(devices)]):
            return tf.constant(values)

    return strategy.experimental_distribute_values_from_function(place)
