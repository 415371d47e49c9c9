"""Limits the time of a native call, which cannot be interrupted from its own thread."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Deadline:
    """Set by the training thread, and checked by the main thread, which can end the process."""

    def __init__(self) -> None:
        self._limits: tuple[tuple[float, Callable[[], str]], ...] = ()

    @contextmanager
    def within(self, seconds: float, explain: Callable[[], str]) -> Iterator[None]:
        """Limit the time of the ``with`` block; within another one, both limits count.

        Args:
            seconds: The limit.
            explain: Returns why the run failed, if it takes longer; called in the main thread.
        """
        outer = self._limits
        self._limits = (*outer, (time.monotonic() + seconds, explain))
        try:
            yield
        finally:
            self._limits = outer

    @property
    def missed(self) -> str:
        """Why the run failed, once a limit has passed, of several the outermost one; empty before."""
        now = time.monotonic()
        return next((explain() for limit, explain in self._limits if now > limit), "")
