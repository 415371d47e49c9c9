"""MLPerf's scenario server: requests that arrive at random times, and the highest rate within a bound of latency."""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from accel_engine.inference.measurement.stability import (
    WINDOWS,
    Measured,
    ignore_windows,
    summarize_windows,
    without_garbage_collection,
)
from accel_engine.inference.measurement.window import SECOND, TOLERANCE, SystemTimer, Timer, Window

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


class ArrivalLoop(Protocol):
    """Answers requests as they arrive by a schedule."""

    @property
    def is_over(self) -> bool:
        """Whether all requests have been answered."""

    def window(self, seconds: float) -> Window:
        """Answer the requests of the next stretch of time, at least one; none if :attr:`is_over`."""


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
        self, serve: Callable[[int], object], schedule: Schedule, largest_batch: int = 1, timer: Timer | None = None
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


RESOLUTION = 0.05
"""Relative difference of two rates at which the search ends."""

HALVINGS = 10
"""How often the rate is halved until latencies are within the bound."""

FEWEST_REQUESTS = 20
"""Requests that should arrive while a rate is measured; at lower rates, chance decides."""

LATE_SHARE = 0.01
"""Share of the requests after the warm-up that may exceed the bound, which is one of the 99th percentile."""


@dataclass(frozen=True, slots=True)
class HighestRate:
    """The result of a search."""

    rate: float
    """Requests per second at which latencies were within the bound; 0 if they never were."""
    measured: Measured
    """What was measured at this rate, or at the lowest one that was tried."""


def highest_rate(
    try_rate: Callable[[float], Measured], capacity: float, bound: float, lowest: float = 0.0
) -> HighestRate:
    """Search the highest rate.

    The first rate is just below the capacity; it is halved until latencies are within the bound. Then the space between
    the highest rate within it and the lowest one beyond it is halved.

    Args:
        try_rate: Measures at a rate, in requests per second.
        capacity: Requests per second that can be answered at most; at higher rates the queue would grow for ever.
        bound: Seconds that the 99th percentile may be at most.
        lowest: Requests per second below which the rate is not halved.
    """
    beyond, rate = capacity, 0.95 * capacity
    for _ in range(HALVINGS):
        measured = try_rate(rate)
        if is_within(measured, bound):
            break
        if rate / 2 < lowest:
            return HighestRate(0.0, measured)
        beyond, rate = rate, rate / 2
    else:
        return HighestRate(0.0, measured)
    best = HighestRate(rate, measured)
    while beyond / best.rate > 1 + RESOLUTION:
        rate = math.sqrt(beyond * best.rate)
        measured = try_rate(rate)
        if is_within(measured, bound):
            best = HighestRate(rate, measured)
        else:
            beyond = rate
    return best


def is_within(measured: Measured, bound: float) -> bool:
    """Whether all requests were measured, and their 99th percentile is at most the bound."""
    return measured.is_complete and measured.percentiles["p99"].value <= bound


def serve_at(
    rate: float,
    serve: Callable[[int], object],
    *,
    largest_batch: int,
    bound: float,
    seconds: float,
    timer: Timer | None = None,
    seed: int = 0,
    on_window: Callable[[Sequence[Window]], object] = ignore_windows,
) -> Measured:
    """Measure the scenario server at a rate, with requests that wait together as one batch; see :func:`arrivals_at`.

    Args:
        rate: Requests per second.
        serve: Answers as many requests as it is called with.
        largest_batch: Requests that are served together at most.
        bound: Seconds that the 99th percentile may be at most.
        seconds: The time limit.
        timer: The clock.
        seed: Of the arrivals.
        on_window: As in :func:`arrivals_at`.
    """

    def make_loop(schedule: Schedule) -> ArrivalLoop:
        return OpenLoop(serve, schedule, largest_batch, timer)

    return arrivals_at(rate, make_loop, bound=bound, seconds=seconds, seed=seed, on_window=on_window)


def arrivals_at(
    rate: float,
    make_loop: Callable[[Schedule], ArrivalLoop],
    *,
    bound: float,
    seconds: float,
    seed: int = 0,
    on_window: Callable[[Sequence[Window]], object] = ignore_windows,
) -> Measured:
    """Measure requests that arrive at a rate; ends early where too many are late already.

    The first tenth of the time is warm-up, in which late requests do not count. At least one request arrives. It is
    stable if the median latency of the second half of the rest is as in the first half, which a growing queue would
    increase.

    Args:
        rate: Requests per second.
        make_loop: Makes what answers the requests of a schedule.
        bound: Seconds that the 99th percentile may be at most.
        seconds: The time limit.
        seed: Of the arrivals.
        on_window: Called with the windows that count, at the end. Between windows it would make the requests late that
            arrive meanwhile.
    """
    schedule = poisson_schedule(rate, seconds, seed)
    if not len(schedule):
        schedule = np.zeros(1, np.int64)
    loop = make_loop(schedule)
    late = 0
    with without_garbage_collection():
        windows = [loop.window(seconds / WINDOWS)]
        may_be_late = LATE_SHARE * (len(schedule) - windows[0].requests)
        while not loop.is_over and late <= may_be_late:
            windows.append(loop.window(seconds / WINDOWS))
            late += int(np.count_nonzero(windows[-1].latencies > bound * SECOND))
    before, counted = (windows[:1], windows[1:]) if len(windows) > 1 else ([], windows)
    on_window(counted)
    difference = _change_of_median(counted)
    found = summarize_windows(before, counted, stable=loop.is_over and difference <= TOLERANCE, disagreement=difference)
    return replace(found, is_complete=loop.is_over)


def _change_of_median(windows: Sequence[Window]) -> float:
    """The relative change of the median latency from the first half of some windows to the second.

    The numbers of requests of single windows differ by chance, and so do their throughputs.
    """
    middle = (len(windows) + 1) // 2
    halves = [windows[:middle], windows[middle:] or windows]
    first, second = (float(np.median(np.concatenate([each.latencies for each in half]))) for half in halves)
    return abs(second - first) / first
