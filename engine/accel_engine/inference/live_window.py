"""What has been measured of a candidate so far, for those who watch; without TensorFlow."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.inference.measurement.timer import SECOND
from accel_engine.inference.measurement.window import LAST, Window

PER_DOUBLING = 8
"""Bins of a histogram from a latency to its double: each is 9% wide."""


@dataclass(frozen=True, slots=True)
class LiveWindow:
    """The last windows of a candidate that is being measured, those that would count if it were stable.

    Attributes:
        title: Of the candidate, see :attr:`accel_engine.inference.candidate.Setup.title`.
        batch_size: Its batch size.
        throughput: Examples per second; in the scenario server, requests.
        first_bin: Index of the first bin: bin ``i`` begins with a latency of ``2 ** (i / PER_DOUBLING)`` nanoseconds.
        counts: Number of requests by bin; empty without latencies.
        p50: Their median latency in seconds; 0 without latencies.
        p99: Their 99th percentile in seconds, by the nearest rank.
    """

    title: str
    batch_size: int
    throughput: float
    first_bin: int = 0
    counts: tuple[int, ...] = ()
    p50: float = 0.0
    p99: float = 0.0

    @classmethod
    def of(cls, title: str, batch_size: int, windows: Sequence[Window]) -> "LiveWindow":
        """Summarize the last windows; takes some milliseconds for 100,000 requests.

        Args:
            title: Of the candidate.
            batch_size: Its batch size.
            windows: All so far, at least one.
        """
        last = windows[-LAST:]
        nanoseconds = sum(each.nanoseconds for each in last)
        rate = sum(each.examples for each in last) * SECOND / max(nanoseconds, 1)
        latencies = np.concatenate([each.latencies for each in last])
        if not len(latencies):
            return cls(title, batch_size, rate)
        bins = np.floor(PER_DOUBLING * np.log2(np.maximum(latencies, 1))).astype(np.int64)
        first = int(bins.min())
        counts: list[int] = np.bincount(bins - first).tolist()
        p50, p99 = (_nearest_rank(latencies, share) for share in (0.5, 0.99))
        return cls(title, batch_size, rate, first, tuple(counts), p50, p99)

    def to_values(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_values(cls, values: dict[str, Any]) -> "LiveWindow":
        """The window of :meth:`to_values`."""
        return cls(**{**values, "counts": tuple(values["counts"])})

    def edges(self) -> npt.NDArray[np.float64]:
        """The ends of the bins in seconds, ``[bins + 1]``."""
        bins = self.first_bin + np.arange(len(self.counts) + 1)
        edges: npt.NDArray[np.float64] = 2.0 ** (bins / PER_DOUBLING) / SECOND
        return edges


def _nearest_rank(latencies: npt.NDArray[np.int64], share: float) -> float:
    rank = max(int(np.ceil(share * len(latencies))) - 1, 0)
    return float(np.partition(latencies, rank)[rank]) / SECOND
