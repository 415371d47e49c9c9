"""A time by which native code must have come back, since nothing in its own thread can stop it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Deadline:
    """Set in the thread that trains, and asked by the one that can end the process."""

    def __init__(self) -> None:
        self._set: tuple[float, Callable[[], str]] | None = None

    @contextmanager
    def within(self, seconds: float, explain: Callable[[], str]) -> Iterator[None]:
        """Give what is done inside so many seconds.

        Args:
            seconds: How long it may take.
            explain: Says why the run failed if it takes longer; called in the thread that asks.
        """
        self._set = (time.monotonic() + seconds, explain)
        try:
            yield
        finally:
            self._set = None

    @property
    def missed(self) -> str:
        """Why the run failed, when the time is over; empty before."""
        limit = self._set
        return limit[1]() if limit is not None and time.monotonic() > limit[0] else ""
