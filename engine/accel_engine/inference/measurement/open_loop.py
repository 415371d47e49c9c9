"""Requests that arrive at random times, whether earlier ones have been answered or not: MLPerf's scenario server."""

from bisect import bisect_right
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from accel_engine.inference.measurement.timer import SECOND, SystemTimer, Timer
from accel_engine.inference.measurement.window import Window

Schedule = npt.NDArray[np.int64]
"""Nanoseconds from the beginning at which each request arrives, in order."""


def poisson_schedule(rate: float, seconds: float, seed: int = 0) -> Schedule:
    """Arrivals of a Poisson process.

    Args:
        rate: Mean number of requests per second.
        seconds: For how long requests arrive.
        seed: Of the random numbers.
    """
    draws = np.random.default_rng(seed)
    arrivals: list[npt.NDArray[np.float64]] = []
    end = 0.0
    while end < seconds:
        gaps = draws.exponential(1 / rate, max(64, round(1.1 * rate * (seconds - end))))
        arrivals.append(end + np.cumsum(gaps))
        end = float(arrivals[-1][-1])
    times = np.concatenate(arrivals)
    return (times[times < seconds] * SECOND).astype(np.int64)


class OpenLoop:
    """Serves requests of one example each as they arrive, those that wait together as one batch.

    A latency begins when a request was to arrive, not when its turn came: if one request stalls, those behind it are
    late, too. (Measuring from the turn would leave that out, which is called coordinated omission.)

    Args:
        serve: Answers as many requests as it is called with; returns when the answers are there.
        schedule: When requests arrive, see :func:`poisson_schedule`.
        largest_batch: Requests that are served together at most.
        timer: The clock.
    """

    def __init__(
        self,
        serve: Callable[[int], object],
        schedule: Schedule,
        largest_batch: int = 1,
        timer: Timer | None = None,
    ) -> None:
        self._serve = serve
        self._schedule = schedule
        self._largest = largest_batch
        self._timer = timer or SystemTimer()
        self._begin: int | None = None
        self._next = 0

    @property
    def is_over(self) -> bool:
        """Whether all requests have been answered."""
        return self._next >= len(self._schedule)

    def window(self, seconds: float) -> Window:
        """Serve the requests of the next stretch of time, at least one; none if :attr:`is_over`."""
        now, wait_until, serve, largest = self._timer.now, self._timer.wait_until, self._serve, self._largest
        if self._begin is None:
            self._begin = now()
        begin, first = self._begin, self._next
        opens = self._schedule[first : first + 1].sum()  # 0 if all are over
        end = int(np.searchsorted(self._schedule, opens + max(round(seconds * SECOND), 1)))
        due: list[int] = (self._schedule[first:end] + begin).tolist()
        served, finished = [], []
        index, count = 0, len(due)
        start = now()
        while index < count:
            wait_until(due[index])
            upto = bisect_right(due, now(), index + 1, min(index + largest, count))
            serve(upto - index)
            finished.append(now())
            served.append(upto - index)
            index = upto
        stop = now()
        self._next = end
        latencies = np.repeat(np.array(finished, np.int64), np.array(served, np.int64)) - np.array(due, np.int64)
        return Window(latencies, count, count, stop - start)
