"""A loop whose steps are taken by workers, each without waiting for the others."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine import clock
from accel_engine.training.assembly import Assembly
from accel_engine.training.loop import ExecutionMode, Loop, Measured, graph_of
from accel_engine.training.worker_pool import WorkerPool

AHEAD = 2
"""Chunks that are handed out at a time, so that a worker has something to do while another is not done yet."""


@dataclass(frozen=True, slots=True)
class _HandedOut:
    """A chunk that workers are at.

    Attributes:
        count: Its steps.
        at: When it was handed out, by ``time.perf_counter()``.
        parts: What each of its dispatches will have measured.
    """

    count: int
    at: float
    parts: tuple[Any, ...]


class CoordinatedLoop(Loop):
    """Hands steps out to workers ahead of time, and gives back what they measured in the order of the steps.

    A chunk is a dispatch of as many steps for each worker, which takes the next one as soon as it is done, be it of
    the next chunk. Weights lie on parameter servers: for every step a worker reads them anew, and adds its
    gradients to whatever they are by then. One worker takes the dispatches in their order, so that its steps are
    those of one device. A dispatch that a worker died over is handed out again as a whole: those of its steps
    that were taken by then are taken twice.

    Args:
        assembly: Model, data and strategy.
        is_wanted: Whether somebody waits for the workers to be at rest, so that nothing more is handed out.
    """

    def __init__(self, assembly: Assembly, is_wanted: Callable[[], bool]) -> None:
        super().__init__(assembly, ExecutionMode(parts=assembly.plan.micro_batches or 1))
        self._is_wanted = is_wanted
        self._count = assembly.simultaneous_steps
        self._workers = WorkerPool(assembly.strategy)
        self._under_way: deque[_HandedOut] = deque()
        self._dispatch = graph_of(self._run_dispatch, assembly)

    @property
    def at_rest(self) -> bool:
        """Whether no worker has anything to do."""
        return not self._under_way

    def trace(self, order: npt.NDArray[np.int32]) -> tf.Graph:
        """Trace the graph of a dispatch, so that the first chunk does not have to, and give it."""
        return self._traced(order).graph

    def run(self, order: npt.NDArray[np.int32], first: int = 0) -> Iterator[Measured]:
        """Take the steps of an order, yielding between two chunks, while workers may be at later ones.

        Args:
            order: Row numbers, int32 ``[steps, 1, batch]``.
            first: The step to begin with.
        """
        given, last = first, 0.0
        while given < len(order) or self._under_way:
            while given < len(order) and len(self._under_way) < AHEAD and (self.at_rest or not self._is_wanted()):
                chunk = order[given : given + self._size.steps]
                self._hand_out(chunk)
                given += len(chunk)
            taken = self._under_way.popleft()
            values = np.concatenate([self._workers.fetch(part) for part in taken.parts])
            # It began when it was handed out, or later: when the one before it was done.
            began, last = max(last, taken.at), time.perf_counter()
            seconds = last - began
            self._size.learn(taken.count, seconds)
            yield Measured(taken.count, clock.now() - seconds, seconds, dict(zip(self._names, values.T, strict=True)))

    def _hand_out(self, order: npt.NDArray[np.int32]) -> None:
        function, shares = self._traced(order), np.array_split(order, min(self._count, len(order)))
        parts = tuple(self._workers.hand_out(function, tf.constant(share)) for share in shares)
        self._under_way.append(_HandedOut(len(order), time.perf_counter(), parts))

    def _traced(self, order: npt.NDArray[np.int32]) -> Any:
        with self._strategy.scope():
            return self._dispatch.get_concrete_function(tf.TensorSpec((None, *order.shape[1:]), tf.int32))

    def _run_dispatch(self, order: tf.Tensor) -> tf.Tensor:
        return self._take_steps(self._feed.open(order), tf.constant(0), tf.shape(order)[0])
