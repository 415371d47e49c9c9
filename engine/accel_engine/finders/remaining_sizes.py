"""How long the batch sizes that are still to be measured take, about."""

import statistics
import time
from collections.abc import Callable

AROUND = 2
"""Sizes that may be measured around the knee and above the largest; see :func:`.throughput.sizes_between`."""


class RemainingSizes:
    """Expects sizes, and measures how long they take.

    Args:
        longer: Seconds by which the answer is measured longer than a size.
        clock: Monotonic seconds.
    """

    def __init__(self, longer: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._longer, self._clock = longer, clock
        self._began = clock()
        self._taken: list[float] = []
        self._expected: int | None = None

    def expect(self, sizes: int) -> None:
        """Expect so many sizes, that of now included, and after them the answer, once."""
        self._expected = sizes

    def expect_doublings(self, size: int, largest: int | None) -> None:
        """Expect a size, twice it and so on up to the largest, which may be unknown, and some around the knee."""
        if largest is None:
            self._expected = None
        else:
            self.expect((largest // size).bit_length() + AROUND)

    def begin(self) -> None:
        """Begin a size, or the answer."""
        self._began = self._clock()

    def end(self) -> None:
        """End a size; the answer takes longer, and says nothing about others."""
        self._taken.append(self._clock() - self._began)

    def seconds_left(self) -> float | None:
        """Seconds that all of them take if each takes as long as those before; ``None`` if that is unknown."""
        if self._expected is None or not self._taken:
            return None
        in_all = statistics.fmean(self._taken) * (self._expected + 1) + self._longer
        return max(0.0, in_all - (self._clock() - self._began))
