"""Searches the highest rate of requests at which latencies stay within a bound."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from accel_engine.inference.measurement.open_loop import OpenLoop, poisson_schedule
from accel_engine.inference.measurement.stability import (
    WINDOWS,
    Measured,
    ignore,
    summarize,
    without_garbage_collection,
)
from accel_engine.inference.measurement.timer import SECOND, Timer
from accel_engine.inference.measurement.window import TOLERANCE, Window

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
    """The result of a search.

    Attributes:
        rate: Requests per second at which latencies were within the bound; 0 if they never were.
        measured: What was measured at this rate, or at the lowest one that was tried.
    """

    rate: float
    measured: Measured


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
    on_window: Callable[[Sequence[Window]], object] = ignore,
) -> Measured:
    """Measure the scenario server at a rate; ends early where too many requests are late already.

    The first tenth of the time is warm-up, in which late requests do not count. At least one request arrives. It is
    stable if the median latency of the second half of the rest is that of the first half, which a growing queue would
    increase.

    Args:
        rate: Requests per second.
        serve: Answers as many requests as it is called with.
        largest_batch: Requests that are served together at most.
        bound: Seconds that the 99th percentile may be at most.
        seconds: The time limit.
        timer: The clock.
        seed: Of the arrivals.
        on_window: Called with the windows that count, at the end. Between windows it would make the requests late that
            arrive meanwhile.
    """
    schedule = poisson_schedule(rate, seconds, seed)
    if not len(schedule):
        schedule = np.zeros(1, np.int64)
    loop = OpenLoop(serve, schedule, largest_batch, timer)
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
    found = summarize(before, counted, stable=loop.is_over and difference <= TOLERANCE, disagreement=difference)
    return replace(found, is_complete=loop.is_over)


def _change_of_median(windows: Sequence[Window]) -> float:
    """The relative change of the median latency from the first half of some windows to the second.

    The numbers of requests of single windows differ by chance, and so do their throughputs.
    """
    middle = (len(windows) + 1) // 2
    halves = [windows[:middle], windows[middle:] or windows]
    first, second = (float(np.median(np.concatenate([each.latencies for each in half]))) for half in halves)
    return abs(second - first) / first
