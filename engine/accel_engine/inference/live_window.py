"""What has been measured of a candidate so far, for those who watch; without TensorFlow."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from accel_engine.inference.measurement.percentiles import nearest_rank
from accel_engine.inference.measurement.window import SECOND, Window

PER_DOUBLING = 8
"""Bins of a histogram from a latency to its double: each is 9% wide."""


@dataclass(frozen=True, slots=True)
class LiveWindow:
    """The windows of a candidate that is being measured, those that count.

    They are the last ones, if the candidate is stable; in the scenario server, all after the warm-up at a rate. That is
    the result's rate, unless another one within the bound is tried later, or this one is beyond it.

    Attributes:
        title: Of the candidate, see :attr:`accel_engine.inference.candidate.Setup.title`.
        batch_size: Its batch size.
        throughput: Examples per second; in the scenario server, requests.
        first_bin: Index of the first bin: bin ``i`` begins with a latency of ``2 ** (i / PER_DOUBLING)`` nanoseconds.
        counts: Number of requests by bin; empty without latencies.
        p50: Their median latency in seconds; 0 without latencies.
        p99: Their 99th percentile in seconds, by the nearest rank.
        rate: In the scenario server, the rate that was tried, in requests per second; 0 in others.
    """

    title: str
    batch_size: int
    throughput: float
    first_bin: int = 0
    counts: tuple[int, ...] = ()
    p50: float = 0.0
    p99: float = 0.0
    rate: float = 0.0

    @classmethod
    def of(cls, title: str, batch_size: int, windows: Sequence[Window], rate: float = 0.0) -> "LiveWindow":
        """Summarize some windows; takes some milliseconds for 100,000 requests.

        Args:
            title: Of the candidate.
            batch_size: Its batch size.
            windows: Those that count, at least one.
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
        p50, p99 = (_percentile(latencies, share) for share in (0.5, 0.99))
        return cls(title, batch_size, throughput, first, tuple(counts), p50, p99, rate)

    def edges(self) -> npt.NDArray[np.float64]:
        """The ends of the bins in seconds, ``[bins + 1]``."""
        bins = self.first_bin + np.arange(len(self.counts) + 1)
        edges: npt.NDArray[np.float64] = 2.0 ** (bins / PER_DOUBLING) / SECOND
        return edges


def _percentile(latencies: npt.NDArray[np.int64], share: float) -> float:
    """A percentile in seconds, without sorting all latencies."""
    place = nearest_rank(len(latencies), share) - 1
    return float(np.partition(latencies, place)[place]) / SECOND
