"""Whether what was sent to the terminal has arrived there: a slow link shall carry news, not a backlog."""

import math
import time
from collections.abc import Callable

FAST_REPLY_SECONDS = 0.25
"""A terminal that answers within this time keeps up."""

REPLY_TIMEOUT_SECONDS = 5.0
"""A question that was not answered by then counts as lost: so seldom does the slowest link get a frame."""

QUERY_INTERVAL_SECONDS = 0.5
"""A terminal that keeps up is asked no more often: each answer costs as much as a small frame."""

QUERY_INTERVAL_BYTES = 1024
"""But for what takes a slow link long."""

MAX_QUEUED_WRITES = 6
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
        self._query_time: float | None = None
        self._round_trip = math.inf
        self._query_number = 0
        self._last_query_time = -math.inf
        self._bytes_since_query = 0

    def can_send(self, waiting: int) -> bool:
        """Whether a frame may be sent now.

        Args:
            waiting: Writes that the terminal has not taken yet.
        """
        if waiting > MAX_QUEUED_WRITES:
            return False
        if self._query_time is None or math.isinf(self._round_trip):
            return True
        age = self._clock() - self._query_time
        if age > REPLY_TIMEOUT_SECONDS:
            self._query_time, self._round_trip = None, age
            return True
        return self._round_trip <= FAST_REPLY_SECONDS and age <= FAST_REPLY_SECONDS

    def frame_sent(self, length: int) -> int | None:
        """Note that a frame of so many bytes goes out.

        Returns:
            The number of the question that shall follow it, a single digit; ``None`` while one is on its way, and
            while none is needed.
        """
        if self._query_time is not None:
            return None
        now = self._clock()
        self._bytes_since_query += length
        prompt = self._round_trip <= FAST_REPLY_SECONDS
        if (
            prompt
            and now - self._last_query_time < QUERY_INTERVAL_SECONDS
            and self._bytes_since_query < QUERY_INTERVAL_BYTES
        ):
            return None
        self._query_time = self._last_query_time = now
        self._bytes_since_query = 0
        self._query_number = self._query_number % 9 + 1
        return self._query_number

    @property
    def expects_reply(self) -> bool:
        """Whether an answer is on its way that will come, as far as one can know."""
        return self._query_time is not None and not math.isinf(self._round_trip)

    def reply_received(self, number: int) -> None:
        """Note that the terminal has answered a question; one that was given up tells nothing."""
        if self._query_time is not None and number == self._query_number:
            self._round_trip = self._clock() - self._query_time
            self._query_time = None
