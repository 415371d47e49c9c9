"""How long the rest of a job takes, by what its parts before have taken."""

import time
from collections.abc import Callable


class RemainingTime:
    """Measures how long parts take; those to come take as long, on average.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began: float | None = None
        self._taken, self._parts = 0.0, 0

    @property
    def current(self) -> float:
        """Seconds since a part began; 0 between two."""
        return 0.0 if self._began is None else self._clock() - self._began

    def begin(self) -> None:
        """Begin a part."""
        self._began = self._clock()

    def end(self, *, counts: bool = True) -> None:
        """End a part.

        Args:
            counts: Whether others are expected to take as long.
        """
        if counts:
            self._taken, self._parts = self._taken + self.current, self._parts + 1
        self._began = None

    def count(self, parts: int) -> None:
        """Take ``parts`` as done since the beginning of the only one that was begun."""
        self._taken, self._parts = self.current, parts

    def seconds_left(self, parts: float, more: float = 0.0) -> float | None:
        """Seconds until all parts have ended; ``None`` before the first one has.

        Args:
            parts: Number of parts from the last :meth:`begin` on, the present one included.
            more: Seconds of what takes a known time.
        """
        return max(0.0, self._taken / self._parts * parts + more - self.current) if self._parts else None
