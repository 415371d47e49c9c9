"""Which batch sizes are measured."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import TypeVar

GROWTH = 1.05
"""A throughput that is this many times the best one so far has grown."""

PATIENCE = 2
"""Batch sizes in a row whose throughput has not grown, after which larger ones are left out."""

LARGEST = 1 << 16
"""The largest batch size."""

T = TypeVar("T")


def growing(measure: Callable[[int], T], throughput: Callable[[T], float]) -> Iterator[T]:
    """Measure the batch sizes 1, 2, 4 and so on, until the throughput stops growing.

    Args:
        measure: Measures a batch size.
        throughput: The throughput of what was measured; 0 if it failed, after which nothing larger is tried.
    """
    best, without = 0.0, 0
    for power in count():
        found = measure(1 << power)
        yield found
        rate = throughput(found)
        grew = rate > GROWTH * best
        best, without = max(best, rate), 0 if grew else without + 1
        if not rate or without == PATIENCE or 1 << (power + 1) > LARGEST:
            return
