"""Sends requests over several connections at once: as fast as they are answered, or as they arrive."""

import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from accel_engine.inference.measurement.rate_search import Schedule
from accel_engine.inference.measurement.window import SECOND, Window

Send = Callable[[Any], object]
"""Sends a request; returns when the answer is there. Each thread has its own connection."""

SWITCH_SECONDS = 0.0005
"""How long a thread computes until another may; Python's own 5 ms would be in the latencies."""


class ConnectionsLoop:
    """Sends on each connection the next request when the one before has been answered.

    Args:
        send: Sends a request.
        requests: Requests, which are sent over and over.
        connections: How many are open at once.
        examples: Examples of each request.
    """

    def __init__(self, send: Send, requests: Sequence[Any], connections: int, examples: int = 1) -> None:
        self._send, self._requests, self._connections, self._examples = send, requests, connections, examples

    def window(self, seconds: float) -> Window:
        """See :meth:`accel_engine.inference.measurement.stability.RequestLoop.window`."""
        now, send, requests = time.perf_counter_ns, self._send, self._requests
        latencies: list[list[int]] = [[] for _ in range(self._connections)]
        begin = now()
        deadline = begin + round(seconds * SECOND)

        def work(place: int) -> None:
            for request in itertools.cycle((*requests[place % len(requests) :], *requests[: place % len(requests)])):
                start = now()
                send(request)
                end = now()
                latencies[place].append(end - start)
                if end >= deadline:
                    return

        in_threads(work, self._connections)
        count = sum(map(len, latencies))
        return Window(np.array([*itertools.chain(*latencies)], np.int64), count, count * self._examples, now() - begin)


class ArrivalConnections:
    """Sends requests as they arrive, each on a connection that is free.

    A latency begins when a request was to arrive, also where all connections wait for answers then.

    Args:
        send: Sends a request.
        requests: Requests of one example each, which are sent over and over.
        schedule: When they arrive.
        connections: How many are open at most.
    """

    def __init__(self, send: Send, requests: Sequence[Any], schedule: Schedule, connections: int) -> None:
        self._send, self._requests, self._schedule, self._connections = send, requests, schedule, connections
        self._begin: int | None = None
        self._next = 0

    @property
    def is_over(self) -> bool:
        """See :class:`accel_engine.inference.measurement.rate_search.ArrivalLoop`."""
        return self._next >= len(self._schedule)

    def window(self, seconds: float) -> Window:
        """See :class:`accel_engine.inference.measurement.rate_search.ArrivalLoop`."""
        now, send, requests = time.perf_counter_ns, self._send, self._requests
        if self._begin is None:
            self._begin = now()
        first = self._next
        opens = self._schedule[first : first + 1].sum()
        end = int(np.searchsorted(self._schedule, opens + max(round(seconds * SECOND), 1)))
        due: list[int] = (self._schedule[first:end] + self._begin).tolist()
        finished = [0] * len(due)
        places = itertools.count()  # whose next() is atomic

        def work(_: int) -> None:
            while (place := next(places)) < len(due):
                if (left := due[place] - now()) > 0:
                    time.sleep(left / SECOND)
                send(requests[(first + place) % len(requests)])
                finished[place] = now()

        start = now()
        in_threads(work, min(self._connections, len(due)))
        stop = now()
        self._next = end
        return Window(np.array(finished, np.int64) - np.array(due, np.int64), len(due), len(due), stop - start)


def in_threads(work: Callable[[int], object], count: int) -> None:
    """Call a function in several threads at once, with their numbers; raises what one of them raises."""
    problems: list[BaseException] = []

    def call(place: int) -> None:
        try:
            work(place)
        except BaseException as error:  # noqa: BLE001 (raised below)
            problems.append(error)

    threads = [threading.Thread(target=call, args=(place,), daemon=True) for place in range(count)]
    with _switching_often():
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    if problems:
        raise problems[0]


@contextmanager
def _switching_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
