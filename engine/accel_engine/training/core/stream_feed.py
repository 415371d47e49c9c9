"""Feeds the batches of a stream: a thread reads ahead on the host, and a chunk gets its batches stacked.

The stream's iterator stays on the host, in this process, so that its position is always the one that was consumed:
distributed iterators read ahead and cannot be saved.
"""

import math
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any

import tensorflow as tf

from accel_engine.data.dataset import StackingStream, Stream
from accel_engine.data.structure import Batch, Structure, flatten, map_structure
from accel_engine.training.core.feed import Feed, Segment
from accel_engine.training.core.uneven_batches import replica_positions

CHUNK_SECONDS = 0.05
"""About how long batches are collected for a chunk."""

AHEAD = 2
"""Chunks that are read ahead at most."""

CLOSE_SECONDS = 2.0
"""How long to wait at most for a stream that is read, when no more is needed."""

AHEAD_BYTES = 1 << 28
"""Bytes that are read ahead at most, but for one chunk."""


class StreamFeed(Feed):
    """Feeds the batches of a stream, each shared by the replicas as :func:`.uneven_batches.replica_positions` says.

    Args:
        strategy: The strategy that the loop runs under.
        stream: The batches.
        device: TensorFlow's name of the device that trains, or of the first one.
        worker: Index of this worker; each reads the whole stream and uses its own part of every batch.
        workers: Number of workers.
    """

    kind = "streamed"
    can_slice = True

    def __init__(
        self, strategy: tf.distribute.Strategy, stream: Stream, device: str, worker: int = 0, workers: int = 1
    ) -> None:
        self._stream = stream
        self._replicas = strategy.num_replicas_in_sync
        self._local = self._replicas // workers
        self._first = worker * self._local
        self._strategy = strategy
        self._spreads = self._replicas > 1 and device.startswith("GPU")
        self._device = device if self._replicas == 1 else "/CPU:0"

    def segments(
        self, epoch: int, position: int, wanted: Callable[[], int], *, exact: bool = False
    ) -> Generator[Segment, None, None]:
        """Yield the rest of an epoch.

        Args:
            epoch: The pass over the stream, from 0.
            position: Batches of it that have been consumed.
            wanted: Returns the number of steps of the next chunk; asked in another thread.
            exact: Whether the numbers of batches must not depend on time, as all workers need the same.
        """

        def read() -> Iterator[tuple[Batch, int]]:
            if isinstance(self._stream, StackingStream) and not exact:
                yield from self._stream.stacks(epoch, position, wanted)
                return
            seconds = math.inf if exact else CHUNK_SECONDS
            yield from _stacked(self._stream.read(epoch, position), wanted, seconds)

        with _ReadAhead(read, self._split, self._device) as stacks:
            while (item := stacks.get()) is not None:
                yield Segment(*item)

    def open(self, order: Batch, first: int = 0) -> Batch:
        """The batches themselves; on GPUs, the parts of several replicas on their devices.

        So steps need not copy them from the host one by one. On CPUs that is a copy more.
        """
        return map_structure(self._on_devices, order) if self._spreads else order

    def spec(self, source: Batch) -> Any:
        """The type of a source, for any number of steps."""
        return map_structure(_spec_of_replicas, source) if self._slices_on_devices else super().spec(source)

    def arguments(self, source: Batch, step: tf.Tensor) -> tuple[Any, ...]:
        """The batch of the step, or where it is sliced on the devices, the source and the step."""
        return (source, step) if self._slices_on_devices else (map_structure(lambda stack: stack[step], source),)

    def examples(self, batch: Batch, step: tf.Tensor | None = None) -> Batch:
        """This replica's part of a batch."""
        if self._local == 1:
            return batch
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group - self._first
        return map_structure(lambda parts: parts[replica if step is None else step], batch)

    @property
    def _slices_on_devices(self) -> bool:
        return self._spreads and self._local > 1

    def _on_devices(self, parts: tf.Tensor) -> Any:
        """The part of each replica of this worker, ``[steps, batch, ...]``."""
        devices = self._strategy.extended.worker_devices  # of this worker
        if self._local == 1:
            with tf.device(devices[0]):
                return tf.identity(parts)

        def place(context: tf.distribute.experimental.ValueContext) -> tf.Tensor:
            own = context.replica_id_in_sync_group - self._first
            with tf.device(devices[own]):
                return tf.identity(parts[:, own])

        return self._strategy.experimental_distribute_values_from_function(place)

    def stacked(self, batch: Batch) -> Batch:
        """The source of a single step with this batch."""
        with tf.device(self._device):
            stack: Batch = map_structure(lambda array: tf.convert_to_tensor(array)[tf.newaxis], batch)
            return self._split(stack)

    def _split(self, stack: Batch) -> Batch:
        """The parts of this worker's replicas, ``[steps, replicas, batch, ...]``; all of a stack for a single one."""
        if self._replicas == 1:
            return stack
        every = replica_positions(int(flatten(stack)[0].shape[1]), self._replicas)
        own = every[self._first : self._first + self._local]
        rows = own[0] if self._local == 1 else own
        return map_structure(lambda array: tf.gather(array, rows, axis=1), stack)


_END: Any = object()


class _ReadAhead:
    """Reads batches in a thread, which ends with the ``with`` block."""

    def __init__(
        self, read: Callable[[], Iterator[tuple[Batch, int]]], split: Callable[[Batch], Batch], device: str
    ) -> None:
        self._read, self._split, self._device = read, split, device
        self._queue: queue.Queue[Any] = queue.Queue()
        self._room = threading.Condition()
        self._stacks, self._bytes, self._stopped = 0, 0, False
        self._thread = threading.Thread(target=self._run, name="read-ahead", daemon=True)

    def __enter__(self) -> "_ReadAhead":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._room:
            self._stopped = True
            self._room.notify()
        self._thread.join(CLOSE_SECONDS)  # the user's code may be waiting for data

    def get(self) -> tuple[Batch, int, int] | None:
        """The next stack, its number of batches and the examples of each; ``None`` at the end.

        Raises what reading raised.
        """
        item, size = self._queue.get()
        if isinstance(item, BaseException):
            raise item
        if item is _END:
            self._queue.put((_END, 0))
            return None
        with self._room:
            self._stacks -= 1
            self._bytes -= size
            self._room.notify()
        return item

    def _run(self) -> None:
        try:
            with tf.device(self._device):
                for raw, count in self._read():
                    stack = map_structure(tf.identity, raw)
                    examples = int(flatten(stack)[0].shape[1])
                    if examples and not self._put(self._split(stack), count, examples):
                        return
            self._queue.put((_END, 0))
        except BaseException as error:  # noqa: BLE001 (raised in the training thread)
            self._queue.put((error, 0))

    def _put(self, stack: Batch, count: int, examples: int) -> bool:
        """Wait for room and add a stack; returns whether to go on."""
        size = sum(int(each.shape.num_elements()) * each.dtype.size for each in flatten(stack))
        with self._room:
            self._room.wait_for(
                lambda: (
                    self._stopped or not self._stacks or (self._stacks < AHEAD and self._bytes + size <= AHEAD_BYTES)
                )
            )
            if self._stopped:
                return False
            self._stacks += 1
            self._bytes += size
        self._queue.put(((stack, count, examples), size))
        return True


def _spec_of_replicas(values: Any) -> Any:
    """The type of the parts of replicas, for any number of steps."""
    parts = tf.nest.flatten(values, expand_composites=True)
    specs = [tf.TensorSpec((None, *each.shape[1:]), each.dtype) for each in parts]
    return type(tf.type_spec_from_value(values))(*specs)


def _stacked(batches: Iterator[Batch], wanted: Callable[[], int], seconds: float) -> Iterator[tuple[Batch, int]]:
    """Stack batches of equal shapes: at most as many as are wanted, collected for about some seconds."""
    waiting: list[Batch] = []
    until = 0.0

    def stack() -> tuple[Batch, int]:
        stacked: Batch = map_structure(lambda *arrays: tf.stack(arrays), *waiting)
        return stacked, len(waiting)

    for batch in batches:
        converted = map_structure(tf.convert_to_tensor, batch)
        if waiting and _signature(converted) != _signature(waiting[0]):
            yield stack()
            waiting = []
        if not waiting:
            until = time.monotonic() + seconds
        waiting.append(converted)
        if len(waiting) >= wanted() or time.monotonic() >= until:
            yield stack()
            waiting = []
    if waiting:
        yield stack()


def _signature(batch: Structure) -> tuple[Any, ...]:
    return tuple((tuple(each.shape), each.dtype) for each in flatten(batch))
