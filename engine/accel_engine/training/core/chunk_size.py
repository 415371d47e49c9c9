"""The number of steps of a chunk."""

import math

CHUNK_SECONDS = 0.05
"""Target duration of a chunk: short enough for live charts and a quick stop, long enough to keep a device busy."""

SHARED_CHUNK_SECONDS = 4 * CHUNK_SECONDS
"""The same with other workers, which synchronize before every chunk."""

MAX_STEPS = 4096
"""The most steps of a chunk."""

LARGEST_GAIN, LARGEST_ACCELERATED_GAIN = 8, 32
"""How many times as fast as another execution mode a compiled chunk may be, for the size of its arrays: on a CPU, and
on an accelerator, where it was up to 26 times as fast (H200)."""


def largest_chunk(rate: float, on_cpu: bool) -> int:
    """The most steps of a compiled chunk, a power of two.

    Args:
        rate: Steps per second of another execution mode; 0 if it is unknown.
        on_cpu: Whether CPUs train, rather than accelerators.
    """
    gain = LARGEST_GAIN if on_cpu else LARGEST_ACCELERATED_GAIN
    wanted = gain * CHUNK_SECONDS * rate if rate else MAX_STEPS
    return min(MAX_STEPS, 1 << max(0, math.ceil(math.log2(max(1.0, wanted)))))


class ChunkSize:
    """Adapts the number of steps per chunk to the duration of a step."""

    def __init__(self, target: float = CHUNK_SECONDS, minimum: int = 1) -> None:
        self._target = target
        self._minimum = minimum
        self.steps = minimum

    def update(self, count: int, seconds: float) -> None:
        """Adapt to the duration of a chunk; grows at most fourfold, so that one quick chunk has little effect."""
        wanted = int(self._target / max(seconds / count, 1e-9))
        self.steps = max(self._minimum, min(wanted, 4 * self.steps, MAX_STEPS))
