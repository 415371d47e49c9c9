"""Percentiles of latencies, with confidence intervals that assume no distribution, and histograms of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.inference.measurement.window import SECOND, Window

RANKS = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
"""The share of requests that take at most as long as each percentile."""

CONFIDENCE = 0.95
"""The level of the intervals."""

_DEVIATIONS = 12
"""Standard deviations around its mean outside of which a binomial distribution has no probability in float64."""


@dataclass(frozen=True, slots=True)
class Percentile:
    """A percentile of latencies."""

    value: float
    """Seconds."""
    low: float | None
    """The lower end of its confidence interval; ``None`` if there are too few requests to tell."""
    high: float | None
    """The upper end; ``None`` if there are too few requests to tell."""


def percentiles(latencies: npt.NDArray[np.int64]) -> dict[str, Percentile]:
    """The percentiles of :data:`RANKS`; empty without latencies.

    Args:
        latencies: Nanoseconds of each request, in any order.
    """
    if not len(latencies):
        return {}
    ordered = np.sort(latencies) / SECOND
    return {name: _percentile(ordered, share) for name, share in RANKS.items()}


def _percentile(ordered: npt.NDArray[np.float64], share: float) -> Percentile:
    """The nearest-rank percentile: the shortest latency that at least ``share`` of the requests do not exceed."""
    count = len(ordered)
    low, high = interval_ranks(count, share, CONFIDENCE)
    return Percentile(
        float(ordered[_nearest_rank(count, share) - 1]),
        float(ordered[low - 1]) if low else None,
        float(ordered[high - 1]) if high else None,
    )


def _nearest_rank(count: int, share: float) -> int:
    """The rank, from 1, of the smallest of ``count`` values that at least ``share`` of them do not exceed."""
    return min(max(math.ceil(round(share * count, 9)), 1), count)


def interval_ranks(count: int, share: float, confidence: float) -> tuple[int | None, int | None]:
    """The ranks, from 1, of the two ordered values that enclose a percentile of the distribution.

    The number of values below the percentile is binomially distributed, so that the values of these ranks enclose it
    with at least the given probability (David and Nagaraja, Order Statistics, 7.1). That takes values that do not
    depend on each other.

    Args:
        count: Number of values.
        share: The percentile, 0 to 1.
        confidence: The probability.

    Returns:
        The lower and the upper rank; ``None`` for one that would take more values.
    """
    first, cumulative = _binomial(count, share)
    tail = (1 - confidence) / 2
    # The percentile is below the value of rank r only if fewer than r values are below it.
    low = first + int(np.searchsorted(cumulative, tail, side="right"))
    high = first + int(np.searchsorted(cumulative, 1 - tail, side="left")) + 1
    return (low if low >= 1 else None), (high if high <= count else None)


def _binomial(count: int, share: float) -> tuple[int, npt.NDArray[Any]]:
    """The smallest number of successes with a probability worth counting, and the cumulative probabilities from it."""
    mean, deviation = count * share, math.sqrt(count * share * (1 - share))
    first = max(0, math.floor(mean - _DEVIATIONS * deviation - _DEVIATIONS))
    last = min(count, math.ceil(mean + _DEVIATIONS * deviation + _DEVIATIONS))
    successes = np.arange(first, last, dtype=np.float64)
    # Each probability from the one before, in logarithms, as they are too small for floats far from the mean.
    steps = np.log((count - successes) / (successes + 1)) + math.log(share / (1 - share))
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    probabilities = np.exp(logs - logs.max())
    return first, np.cumsum(probabilities) / probabilities.sum()


PER_DOUBLING = 8
"""Bins of a histogram from a latency to its double: each is 9% wide."""


@dataclass(frozen=True, slots=True)
class LiveWindow:
    """The windows of a candidate that is being measured, those that count.

    They are the last ones, if the candidate is stable; in the scenario server, all after the warm-up at a rate. That is
    the result's rate, unless another one within the bound is tried later, or this one is beyond it.
    """

    title: str
    """Title of the candidate, see :attr:`accel_engine.inference.candidate.Setup.title`."""
    batch_size: int
    throughput: float
    """Examples per second; in the scenario server, requests."""
    first_bin: int = 0
    """Index of the first bin: bin ``i`` begins with a latency of ``2 ** (i / PER_DOUBLING)`` nanoseconds."""
    counts: tuple[int, ...] = ()
    """Number of requests by bin; empty without latencies."""
    p50: float = 0.0
    """Their median latency in seconds; 0 without latencies."""
    p99: float = 0.0
    """Their 99th percentile in seconds, by the nearest rank."""
    rate: float = 0.0
    """In the scenario server, the rate that was tried, in requests per second; 0 in others."""

    @classmethod
    def of(cls, title: str, batch_size: int, windows: Sequence[Window], rate: float = 0.0) -> "LiveWindow":
        """Summarize some windows; takes some milliseconds for 100,000 requests.

        Args:
            title: Of the candidate.
            batch_size: Its batch size.
            windows: The windows that count, at least one.
            rate: Requests per second that arrived, in the scenario server.
        """
        nanoseconds = sum(each.nanoseconds for each in windows)
        throughput = sum(each.examples for each in windows) * SECOND / max(nanoseconds, 1)
        latencies = np.concatenate([each.latencies for each in windows])
        if not len(latencies):
            return cls(title, batch_size, throughput, rate=rate)
        bins = np.floor(PER_DOUBLING * np.log2(np.maximum(latencies, 1))).astype(np.int64)
        first = int(bins.min())
        counts: list[int] = np.bincount(bins - first).tolist()
        p50, p99 = (_unsorted_percentile(latencies, share) for share in (0.5, 0.99))
        return cls(title, batch_size, throughput, first, tuple(counts), p50, p99, rate)

    def edges(self) -> npt.NDArray[np.float64]:
        """The ends of the bins in seconds, ``[bins + 1]``."""
        bins = self.first_bin + np.arange(len(self.counts) + 1)
        return 2.0 ** (bins / PER_DOUBLING) / SECOND


def _unsorted_percentile(latencies: npt.NDArray[np.int64], share: float) -> float:
    """A percentile in seconds, without sorting all latencies."""
    place = _nearest_rank(len(latencies), share) - 1
    return float(np.partition(latencies, place)[place]) / SECOND
