"""The training loop of a coordinator, whose workers run steps asynchronously."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.feed import Segment
from accel_engine.training.core.loop import ExecutionMode, Loop, PendingChunk
from accel_engine.training.core.step import graph_of
from accel_engine.training.core.worker_data import data_error


class CoordinatedLoop(Loop):
    """Schedules chunks on workers ahead of time, and yields their results in the order of the steps.

    A chunk is at most one dispatch per worker, whose numbers of steps differ by one at most. A worker that is done
    starts the next dispatch, which may belong to the next chunk. For every step, a worker reads the weights from the
    parameter servers and applies its gradients to their then current values. A single worker runs the dispatches in
    order, as one device would. The dispatch of a lost worker is scheduled again as a whole, so its completed steps run
    twice.

    Args:
        assembly: Model, data and strategy.
        must_wait: Whether a command or something by the clock is due, so that no step is scheduled until it is done.
    """

    def __init__(self, assembly: Assembly, must_wait: Callable[[], bool]) -> None:
        super().__init__(assembly, ExecutionMode(micro_batches=assembly.plan.micro_batches or 1), must_wait=must_wait)
        self._count = assembly.simultaneous_steps
        self._workers = WorkerPool(assembly.strategy)
        self._dispatch = graph_of(self._run_dispatch, assembly)

    def trace(self, segment: Segment) -> tf.Graph:
        """Trace the graph of a dispatch ahead of the first chunk, and return it."""
        return self._dispatch_for(segment.order).graph

    def _scheduler(self, segment: Segment, first: int) -> Callable[[int, int], PendingChunk]:
        order: npt.NDArray[np.int32] = segment.order

        def schedule(position: int, most: int) -> PendingChunk:
            rows = order[position : position + min(self._size.steps, most)]
            function, parts = self._dispatch_for(rows), np.array_split(rows, min(self._count, len(rows)))
            results = tuple(self._workers.schedule(function, tf.constant(part)) for part in parts)
            return PendingChunk(len(rows), time.perf_counter(), results)

        return schedule

    def _fetch(self, result: Any) -> npt.NDArray[np.float32]:
        return np.concatenate([self._workers.fetch(each) for each in result])

    def _dispatch_for(self, order: npt.NDArray[np.int32]) -> Any:
        with self._strategy.scope():
            return self._dispatch.get_concrete_function(tf.TensorSpec((None, *order.shape[1:]), tf.int32))

    def _run_dispatch(self, order: tf.Tensor) -> tf.Tensor:
        return tf.concat(self._take_steps(self._feed.open(order), tf.constant(0), tf.shape(order)[0]), axis=1)


class WorkerPool:
    """The workers of a coordinator; each runs the oldest scheduled graph as soon as it is free.

    Args:
        strategy: The parameter-server strategy.
    """

    def __init__(self, strategy: tf.distribute.ParameterServerStrategy) -> None:
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)

    def schedule(self, function: Any, *arguments: Any) -> Any:
        """Schedule a graph on any worker, or on another if it is lost; returns the argument of :meth:`fetch`.

        Raises:
            DataError: A worker cannot read its examples.
            tf.errors.OpError: A graph that was scheduled earlier has failed.
        """
        try:
            return self._coordinator.schedule(function, args=arguments)
        except tf.errors.OpError as error:
            raise data_error(error) or error from None

    def fetch(self, result: Any) -> npt.NDArray[np.float32]:
        """Wait for the result of a scheduled graph.

        Raises:
            DataError: A worker cannot read its examples.
            tf.errors.OpError: The graph has failed, or was cancelled because another graph failed.
        """
        try:
            values: npt.NDArray[np.float32] = result.fetch()
        except tf.errors.OpError as error:
            cause = self._cause(error)
            raise data_error(cause) or cause from None
        return values

    def _cause(self, error: tf.errors.OpError) -> tf.errors.OpError:
        """The first error; other graphs are cancelled because of it."""
        try:
            self._coordinator.join()
        except tf.errors.OpError as first:
            return first
        return error
