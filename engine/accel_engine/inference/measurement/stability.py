"""Sends requests one after the other, and measures until the last windows agree."""

import gc
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from typing import Generic, Protocol, TypeVar

import numpy as np

from accel_engine.inference.measurement.percentiles import Percentile, percentiles
from accel_engine.inference.measurement.window import LAST, SECOND, TOLERANCE, SystemTimer, Timer, Window, disagreement

WINDOWS = 10
"""Windows that fit in the time limit, if none takes longer than it should."""


class RequestLoop(Protocol):
    """Sends requests, window by window."""

    def window(self, seconds: float) -> Window:
        """Send requests for some time."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures of the windows that count."""

    percentiles: dict[str, Percentile]
    """Percentiles of the latencies by name; empty if only the throughput counts."""
    throughput: float
    """Examples per second."""
    requests: int
    """Number of requests in these windows."""
    seconds: float
    """How long they took."""
    warm_up_requests: int
    """Requests before them."""
    warm_up_seconds: float
    """Time before them."""
    stable: bool
    """Whether the windows agree."""
    disagreement: float
    """Their largest relative deviation, see :func:`disagreement`."""
    is_complete: bool = True
    """Whether the measurement was not given up early."""


def ignore_windows(windows: Sequence[Window]) -> None:
    """Tell nobody of windows that have ended."""


def measure(
    loop: RequestLoop,
    seconds: float,
    *,
    timer: Timer | None = None,
    on_window: Callable[[Sequence[Window]], object] = ignore_windows,
) -> Measured:
    """Measure until the throughputs and the median latencies of the last three windows agree; only these count.

    Args:
        loop: Sends the requests.
        seconds: The time limit; a window is a tenth of it. The last window may exceed it.
        timer: The clock.
        on_window: Called with the last windows, which count if they agree, when one has ended and before the next one
            begins.
    """
    clock = timer or SystemTimer()
    windows: list[Window] = []
    deadline = clock.now() + round(seconds * SECOND)
    with without_garbage_collection():
        while True:
            windows.append(loop.window(seconds / WINDOWS))
            last = windows[-LAST:]
            on_window(last)
            agreed = len(last) == LAST and disagreement(last) <= TOLERANCE
            if agreed or clock.now() >= deadline:
                return summarize_windows(windows[:-LAST], last, stable=agreed, disagreement=disagreement(last))


def summarize_windows(
    before: Sequence[Window], counted: Sequence[Window], *, stable: bool, disagreement: float
) -> Measured:
    """The figures of the windows that count, and of the warm-up before them."""
    nanoseconds = sum(each.nanoseconds for each in counted)
    return Measured(
        percentiles(np.concatenate([each.latencies for each in counted])),
        sum(each.examples for each in counted) * SECOND / max(nanoseconds, 1),
        sum(each.requests for each in counted),
        nanoseconds / SECOND,
        sum(each.requests for each in before),
        sum(each.nanoseconds for each in before) / SECOND,
        stable,
        disagreement,
    )


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Collect garbage before, and not in between, as :mod:`timeit` does."""
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


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
