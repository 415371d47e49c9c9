"""Whether what was sent to the terminal has arrived there: a slow link shall carry news, not a backlog."""

import math
import time
from collections.abc import Callable

PROMPT_SECONDS = 0.25
"""A terminal that answers within this time keeps up."""

PATIENCE_SECONDS = 5.0
"""A question that was not answered by then was lost."""

MOST_WAITING = 6
"""Writes that may wait for the terminal to take them; a frame is up to three."""


class Link:
    """Says when there is room for another frame, from how long the terminal takes to answer.

    After a frame the terminal is asked a question, which it answers when it has come so far. One that keeps up
    is never waited for. For one that does not, the next frame waits until the last one has arrived, so that the
    answer to a key has at most one frame before it. One that never answers is judged by what waits alone.

    Args:
        clock: Seconds, from any beginning.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._asked: float | None = None
        self._took = math.inf

    def has_room(self, waiting: int) -> bool:
        """Whether a frame may be sent now.

        Args:
            waiting: Writes that the terminal has not taken yet.
        """
        if waiting > MOST_WAITING:
            return False
        if self._asked is None or math.isinf(self._took):
            return True
        age = self._clock() - self._asked
        if age > PATIENCE_SECONDS:
            self._asked = None
            return True
        return self._took <= PROMPT_SECONDS and age <= PROMPT_SECONDS

    def sent(self) -> bool:
        """Note that a frame goes out; whether a question shall follow it."""
        if self._asked is not None:
            return False
        self._asked = self._clock()
        return True

    @property
    def expects(self) -> bool:
        """Whether an answer is on its way that will come, as far as one can know."""
        return self._asked is not None and self._took <= PATIENCE_SECONDS

    def answered(self) -> None:
        """Note that the terminal has answered."""
        if self._asked is not None:
            self._took = self._clock() - self._asked
            self._asked = None
