"""Adds up chunks of steps for their rate."""

from accel_engine.training.core.loop import ChunkResult


class ChunkRate:
    """The rate of some chunks together.

    Args:
        warm_up: Whether the first chunk does not count.

    Attributes:
        chunks: Number of chunks.
        seconds: Their duration.
    """

    def __init__(self, *, warm_up: bool = False) -> None:
        self._warms_up = warm_up
        self._steps = 0
        self.chunks, self.seconds = 0, 0.0

    def add(self, chunk: ChunkResult) -> None:
        """Add a chunk."""
        if self._warms_up:
            self._warms_up = False
            return
        self.chunks += 1
        self._steps += chunk.count
        self.seconds += chunk.seconds

    @property
    def value(self) -> float:
        """Steps per second; 0 without chunks."""
        return self._steps / self.seconds if self.seconds else 0.0
