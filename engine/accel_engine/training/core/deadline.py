"""Limits the time of a native call, which cannot be interrupted from its own thread."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Deadline:
    """Set by the training thread, and checked by the main thread, which can end the process."""

    def __init__(self) -> None:
        self._set: tuple[float, Callable[[], str]] | None = None

    @contextmanager
    def within(self, seconds: float, explain: Callable[[], str]) -> Iterator[None]:
        """Limit the time of the ``with`` block.

        Args:
            seconds: The limit.
            explain: Returns why the run failed, if it takes longer; called in the main thread.
        """
        self._set = (time.monotonic() + seconds, explain)
        try:
            yield
        finally:
            self._set = None

    @property
    def missed(self) -> str:
        """Why the run failed, once the limit has passed; empty before."""
        limit = self._set
        return limit[1]() if limit is not None and time.monotonic() > limit[0] else ""
