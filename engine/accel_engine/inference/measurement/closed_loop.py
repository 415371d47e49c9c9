"""Requests one after the other: MLPerf's scenarios single stream, multi-stream and offline."""

from array import array
from collections.abc import Callable, Iterable, Iterator
from itertools import cycle
from typing import Generic, TypeVar

import numpy as np

from accel_engine.inference.measurement.window import SECOND, SystemTimer, Timer, Window

CAPACITY = 1 << 20
"""Requests of a window at most; their latencies take 8 MiB, which are allocated beforehand."""

T = TypeVar("T")


class ClosedLoop(Generic[T]):
    """Sends each request when the one before has been answered.

    Args:
        serve: Answers a request; returns when the answer is there.
        requests: The requests, which are sent over and over.
        examples: Examples of each request.
        timer: The clock.
        keeps_latencies: Whether latencies count, or only the throughput, as in the scenario offline.
        capacity: Requests of a window at most.
    """

    def __init__(
        self,
        serve: Callable[[T], object],
        requests: Iterable[T],
        examples: int,
        *,
        timer: Timer | None = None,
        keeps_latencies: bool = True,
        capacity: int = CAPACITY,
    ) -> None:
        self._serve = serve
        self._requests: Iterator[T] = cycle(requests)
        self._examples = examples
        self._timer = timer or SystemTimer()
        self._keeps_latencies = keeps_latencies
        self._latencies = array("q", bytes(8 * capacity))

    def window(self, seconds: float) -> Window:
        """Send requests for some time, and at least one."""
        now, serve, latencies = self._timer.now, self._serve, self._latencies
        last, index = len(latencies) - 1, 0
        begin = now()
        deadline = begin + round(seconds * SECOND)
        for request in self._requests:
            start = now()
            serve(request)
            end = now()
            latencies[index] = end - start
            if end >= deadline or index == last:
                break
            index += 1
        count = index + 1
        kept = np.array(latencies[:count], np.int64) if self._keeps_latencies else np.empty(0, np.int64)
        return Window(kept, count, count * self._examples, end - begin)
