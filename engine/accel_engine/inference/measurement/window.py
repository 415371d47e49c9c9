"""A stretch of a measurement, and whether the last ones agree."""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

SECOND = 1_000_000_000
"""Nanoseconds of a second."""

SPIN = 200_000
"""Nanoseconds before the end of a wait in which the clock is read all the time, as a sleep may end that much late."""


class Timer(Protocol):
    """A clock that can be waited for."""

    now: Callable[[], int]
    """Returns nanoseconds of a monotonic clock."""

    def wait_until(self, due: int) -> None:
        """Return at the given time of the clock, or at once if it has passed."""


class SystemTimer:
    """The clock with the highest resolution that Python has."""

    now = staticmethod(time.perf_counter_ns)

    def wait_until(self, due: int) -> None:
        """See :class:`Timer`."""
        left = due - self.now()
        if left > SPIN:
            time.sleep((left - SPIN) / SECOND)
        while self.now() < due:
            pass


LAST = 3
"""Windows that have to agree, as many as in Triton's Performance Analyzer."""

TOLERANCE = 0.05
"""The largest deviation from their mean with which windows agree."""


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """The measurements of a stretch of time."""

    latencies: npt.NDArray[np.int64]
    """Nanoseconds of each request, in order; empty if only the throughput counts."""
    requests: int
    examples: int
    """Examples that they had in all."""
    nanoseconds: int
    """How long the window took."""

    @property
    def throughput(self) -> float:
        """Examples per second."""
        return self.examples * SECOND / max(self.nanoseconds, 1)

    @property
    def median(self) -> float:
        """The median latency in nanoseconds; 0 without latencies."""
        return float(np.median(self.latencies)) if len(self.latencies) else 0.0


def disagreement(windows: Sequence[Window]) -> float:
    """The largest relative deviation of a throughput or a median latency from its mean in some windows."""
    return max(deviation([each.throughput for each in windows]), deviation([each.median for each in windows]))


def deviation(values: Collection[float]) -> float:
    """The largest deviation of some values from their mean, as a share of it."""
    mean = sum(values) / len(values)
    return max(abs(value - mean) for value in values) / mean if mean else 0.0
