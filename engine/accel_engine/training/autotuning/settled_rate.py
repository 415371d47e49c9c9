"""Measures the rate of a run once it has settled."""

import statistics
from collections import deque

from accel_engine.training.core.loop import ChunkResult, ExecutionMode
from accel_engine.training.core.step_rate import StepRate

WINDOW_SECONDS = 1.0
"""Steps of this many seconds give a rate."""

WINDOWS = 3
"""How many rates in succession must agree."""

AGREEMENT = 1.1
"""How much they may differ, as a ratio."""


class SettledRate:
    """Finds steps per second in one execution mode, without the first chunk, a warm-up."""

    def __init__(self) -> None:
        self._mode: ExecutionMode | None = None
        self._rates: deque[float] = deque(maxlen=WINDOWS)
        self._window = StepRate()

    def add(self, chunk: ChunkResult, mode: ExecutionMode) -> None:
        """Add a chunk of full batches; begins anew if its mode differs from the last chunk's."""
        if mode != self._mode:
            self._mode = mode
            self._rates.clear()
            self._window = StepRate()
            return
        self._window.add(chunk)
        if self._window.seconds >= WINDOW_SECONDS:
            self._rates.append(self._window.value)
            self._window = StepRate()

    @property
    def value(self) -> float | None:
        """The median of the latest windows; ``None`` while there are too few or they disagree."""
        if len(self._rates) < WINDOWS or max(self._rates) > AGREEMENT * min(self._rates):
            return None
        return statistics.median(self._rates)
