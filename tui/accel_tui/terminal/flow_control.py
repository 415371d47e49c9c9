"""Flow control: a slow connection skips frames instead of queueing them."""

import math
import time
from collections.abc import Callable

FAST_REPLY_SECONDS = 0.25
"""A terminal that replies within this time keeps up."""

REPLY_TIMEOUT_SECONDS = 5.0
"""A query without a reply after this time counts as lost; a stalled connection gets frames this seldom."""

QUERY_INTERVAL_SECONDS = 0.5
"""Minimum interval between queries to a terminal that keeps up: a reply costs as much as a small frame."""

QUERY_INTERVAL_BYTES = 1024
"""A frame this large is followed by a query despite the interval."""

MAX_QUEUED_WRITES = 6
"""Maximum number of writes in the queue; a frame takes up to three."""


class FlowControl:
    """Decides when the next frame may be sent, from the round-trip time of queries.

    A frame may be followed by a query that the terminal answers after it. A terminal that keeps up is queried now and
    then, without waiting. For a slow one, the next frame waits until the last one has arrived, so the response to a
    key press is behind at most one frame. For a terminal that never replies, only the queue of writes counts.

    Args:
        clock: Monotonic time in seconds.
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
            waiting: Number of queued writes.
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
        """Record that a frame is sent.

        Args:
            length: Its size in bytes.

        Returns:
            The number of the query to send after it, a single digit; ``None`` if none is needed or one is pending.
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
        """Whether the reply to a query is still to come, as far as known."""
        return self._query_time is not None and not math.isinf(self._round_trip)

    def reply_received(self, number: int) -> None:
        """Record a reply; replies to queries that were given up are ignored."""
        if self._query_time is not None and number == self._query_number:
            self._round_trip = self._clock() - self._query_time
            self._query_time = None
