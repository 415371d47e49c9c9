"""Feeds batches to the replicas: from examples cached on every device, read by row on the host, or from a stream.

A loop runs segments: steps of one batch size that come from one source.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.dataset import Split, take_rows
from accel_engine.data.structure import Batch, Structure, flatten, map_structure
from accel_engine.devices.host_probe import processors
from accel_engine.memory import CACHE_SHARE, available_memory

PREFETCH = 4
"""Batches that a streamed feed prefetches."""

MAX_PARALLEL = 8
"""Batches that a streamed feed reads in parallel at most, as each takes memory."""

Read = TypeVar("Read")


class Feed(Protocol):
    """Source of a compiled loop's batches; feeds are classes of this one.

    A loop calls :meth:`open` on the host. In the graph, for every step, it calls :meth:`arguments` in the cross-replica
    context and :meth:`examples` in each replica's.
    """

    kind: str
    can_slice: bool
    """Whether the batches of several steps are a slice of a source."""

    def open(self, order: Any, first: int = 0) -> Any:
        """Open a source of the batches of an order, starting at a step.

        Args:
            order: Row numbers, int32 ``[steps, replicas, per_replica_batch]``; of a stream, its batches themselves.
            first: The first step that will be read. Feeds that take a step by its index open the whole order.
        """

    def spec(self, source: Any) -> Any:
        """The type of a source, for any number of steps; by default of arrays ``[steps, ...]``."""
        return map_structure(lambda array: tf.TensorSpec((None, *array.shape[1:]), array.dtype), source)

    def arguments(self, source: Any, step: tf.Tensor) -> tuple[Any, ...]:
        """The arguments of :meth:`examples` for the step at this index of the order."""

    def examples(self, *arguments: Any) -> Batch:
        """A replica's raw examples; arrays ``[per_replica_batch, ...]``."""

    def take_input_wait(self) -> float:
        """Seconds in which steps waited for batches within their graph, since the last call; by default unmeasured."""
        return 0.0


def slice_of(source: Any, first: tf.Tensor, count: tf.Tensor) -> Any:
    """The source of some steps of another one, of a feed that can slice them; arrays ``[count, ...]``."""
    return map_structure(lambda array: array[first : first + count], source)


class CachedFeed(Feed):
    """Caches the whole split on every replica's device; a step sends row numbers only.

    Args:
        strategy: The strategy that the loop runs under.
        split: The examples.
    """

    kind = "resident"
    can_slice = True

    def __init__(self, strategy: tf.distribute.Strategy, split: Split) -> None:
        self._batch = map_structure(lambda array: _copy_to_devices(strategy, np.asarray(array)), split.batch)

    def open(self, order: npt.NDArray[np.int32], first: int = 0) -> tf.Tensor:
        """Copy the order to the device."""
        return tf.constant(order)

    def arguments(self, source: tf.Tensor, step: tf.Tensor) -> tuple[Any, ...]:
        """The cached arrays and the row numbers of the step."""
        return self._batch, source[step]

    def examples(self, batch: Batch, indices: tf.Tensor) -> Batch:
        """Gather this replica's rows."""
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        own = indices[replica]
        return map_structure(lambda array: tf.gather(array, own), batch)


class StreamedFeed(Feed):
    """Reads batches by row on the host with ``tf.data`` and prefetches them.

    Args:
        strategy: The strategy that the loop runs under.
        split: The examples; some arrays may be lazy.
        portable: Whether examples in memory become part of the pipeline, so that it can run on another host, such as a
            TPU's.
    """

    kind = "streamed"
    can_slice = False

    def __init__(self, strategy: tf.distribute.Strategy, split: Split, *, portable: bool = False) -> None:
        self._strategy = strategy
        self._split = split
        self._constants = map_structure(tf.constant, split.batch) if portable and split.in_memory else None
        self._input_wait = None if portable else InputWait()  # its clock would be another host's

    def open(self, order: npt.NDArray[np.int32], first: int = 0) -> Any:
        """Create an iterator over the batches of the order, starting at step ``first``."""

        def pipeline(context: tf.distribute.InputContext) -> tf.data.Dataset:
            # Each replica of a worker takes the next element of the worker's pipeline in turn.
            replicas = order.shape[1] // context.num_input_pipelines
            own = slice(context.input_pipeline_id * replicas, (context.input_pipeline_id + 1) * replicas)
            return self._batches(order[first:, own])

        return iter(self._strategy.distribute_datasets_from_function(pipeline))

    def spec(self, source: Any) -> Any:
        """The iterator's type."""
        return tf.type_spec_from_value(source)

    def _batches(self, order: npt.NDArray[np.int32]) -> tf.data.Dataset:
        """The batches of an order, replica after replica."""
        arrays = self._split.arrays
        types = [tf.string if array.dtype.kind in "OUS" else tf.as_dtype(array.dtype) for array in arrays]

        def take(rows: npt.NDArray[np.int32]) -> list[npt.NDArray[Any]]:
            return [_plain(take_rows(array, rows)) for array in arrays]

        def read(rows: tf.Tensor) -> tuple[Any, ...]:
            if self._constants is not None:
                return tuple(map_structure(lambda array: tf.gather(array, rows), self._constants))
            read_arrays = tf.numpy_function(take, [rows], types)
            shaped = iter(
                tf.ensure_shape(values, (rows.shape[0], *array.shape[1:]))
                for values, array in zip(read_arrays, arrays, strict=True)
            )
            return tuple(filled(self._split.batch, shaped))

        return _without_autotune(
            tf.data.Dataset.from_tensor_slices(order.reshape(-1, order.shape[2]))
            .map(read, num_parallel_calls=min(processors(), MAX_PARALLEL), deterministic=True)
            .prefetch(PREFETCH * order.shape[1])
        )

    def arguments(self, source: Any, step: tf.Tensor) -> tuple[Any, ...]:
        """The pipeline's next batch."""
        return self._input_wait.measure(source.get_next) if self._input_wait is not None else source.get_next()

    def take_input_wait(self) -> float:
        """The time of the pipeline's next batches; zero where that cannot be measured."""
        return self._input_wait.take() if self._input_wait is not None else 0.0

    def examples(self, inputs: Structure, targets: Structure, weights: Structure) -> Batch:
        """Return the batch unchanged."""
        return Batch(inputs, targets, weights)


@dataclass(frozen=True, slots=True)
class Segment:
    """Steps of one batch size that come from one source."""

    order: Any
    """What :meth:`Feed.open` takes."""
    steps: int
    """Number of steps."""
    examples: int
    """Examples of each step, over all replicas."""


def choose_feed(
    strategy: tf.distribute.Strategy, split: Split, device_memory: int | None, *, may_cache: bool = True
) -> Feed:
    """Cache the examples on the devices if they fit; stream them otherwise.

    Args:
        strategy: The strategy that the loop runs under.
        split: The examples.
        device_memory: Free bytes of each device; ``None`` for host memory, 0 for a TPU, or if it is unknown.
        may_cache: Whether they may be cached.
    """
    if device_memory == 0:
        return StreamedFeed(strategy, split, portable=True)
    replicas = strategy.num_replicas_in_sync
    free = available_memory() / replicas if device_memory is None else device_memory
    # Text cannot be gathered on an accelerator.
    text = device_memory is not None and any(array.dtype.kind in "OUS" for array in split.arrays)
    if may_cache and split.in_memory and not text and split.nbytes <= CACHE_SHARE * free:
        return CachedFeed(strategy, split)
    return StreamedFeed(strategy, split)


def filled(structure: Structure, values: Iterator[Any]) -> Structure:
    """A structure with its arrays replaced by values, in the order of :func:`flatten`."""
    paths = {id(array): value for array, value in zip(flatten(structure), values, strict=True)}
    return map_structure(lambda array: paths[id(array)], structure)


def _plain(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An array as ``tf.numpy_function`` takes it: text as Python objects."""
    return array.astype(object) if array.dtype.kind in "US" else array


def _copy_to_devices(strategy: tf.distribute.Strategy, values: npt.NDArray[Any]) -> Any:
    if strategy.num_replicas_in_sync == 1:
        with strategy.scope():
            return tf.constant(values)
    devices = strategy.extended.worker_devices  # of this worker

    def place(context: tf.distribute.experimental.ValueContext) -> tf.Tensor:
        with tf.device(devices[context.replica_id_in_sync_group % len(devices)]):
            return tf.constant(values)

    return strategy.experimental_distribute_values_from_function(place)


class InputWait:
    """Adds up the seconds in which a graph waits for batches, on the host."""

    def __init__(self) -> None:
        with tf.device("/CPU:0"):
            self._seconds = tf.Variable(0.0, trainable=False, dtype=tf.float64)

    def measure(self, read: Callable[[], Read]) -> Read:
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
            self._seconds.assign_sub(seconds)  # steps may be adding to it
        return seconds


def _without_autotune(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """A dataset without tuning; give each of its transformations a number, instead of ``tf.data.AUTOTUNE``.

    For what follows from tuning, see :class:`accel_engine.data.python_source.tf_data_stream.FreedIterator`.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)
