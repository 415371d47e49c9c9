"""Whether what was sent to the terminal has arrived there: a slow link shall carry news, not a backlog."""

import math
import time
from collections.abc import Callable

PROMPT_SECONDS = 0.25
"""A terminal that answers within this time keeps up."""

PATIENCE_SECONDS = 5.0
"""A question that was not answered by then counts as lost: so seldom does the slowest link get a frame."""

UNASKED_SECONDS = 0.5
"""A terminal that keeps up is asked no more often: each answer costs as much as a small frame."""

UNASKED_BYTES = 1024
"""But for what takes a slow link long."""

MOST_WAITING = 6
"""Writes that may wait for the terminal to take them; a frame is up to three."""


class FlowControl:
    """Says when there is room for another frame, from how long the terminal takes to answer.

    After a frame the terminal may be asked a question, which it answers when it has come so far. One that keeps up
    is asked now and then, and never waited for. For one that does not, the next frame waits until the last one has
    arrived, so that the answer to a key has at most one frame before it. One that never answers is judged by what
    waits alone.

    Args:
        clock: Seconds, from any beginning.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._asked: float | None = None
        self._took = math.inf
        self._number = 0
        self._last = -math.inf
        self._unasked = 0

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
            self._asked, self._took = None, age
            return True
        return self._took <= PROMPT_SECONDS and age <= PROMPT_SECONDS

    def sent(self, length: int) -> int | None:
        """Note that a frame of so many bytes goes out.

        Returns:
            The number of the question that shall follow it, a single digit; ``None`` while one is on its way, and
            while none is needed.
        """
        if self._asked is not None:
            return None
        now = self._clock()
        self._unasked += length
        prompt = self._took <= PROMPT_SECONDS
        if prompt and now - self._last < UNASKED_SECONDS and self._unasked < UNASKED_BYTES:
            return None
        self._asked = self._last = now
        self._unasked = 0
        self._number = self._number % 9 + 1
        return self._number

    @property
    def expects(self) -> bool:
        """Whether an answer is on its way that will come, as far as one can know."""
        return self._asked is not None and not math.isinf(self._took)

    def answered(self, number: int) -> None:
        """Note that the terminal has answered a question; one that was given up tells nothing."""
        if self._asked is not None and number == self._number:
            self._took = self._clock() - self._asked
            self._asked = None
