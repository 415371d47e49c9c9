"""Time in nanoseconds, and waiting until a time, more exactly than a sleep does."""

import time
from collections.abc import Callable
from typing import Protocol

SECOND = 1_000_000_000
"""Nanoseconds of a second."""

SPIN = 200_000
"""Nanoseconds before the end of a wait in which the clock is read all the time, as a sleep may end that much late."""


class Timer(Protocol):
    """A clock that can be waited for.

    Attributes:
        now: Returns nanoseconds of a monotonic clock.
    """

    now: Callable[[], int]

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
