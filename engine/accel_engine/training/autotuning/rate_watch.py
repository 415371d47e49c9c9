"""Notices that a run has become slower or faster than when its execution mode was chosen."""

from accel_engine.training.core.loop import ChunkResult

WINDOW_SECONDS = 2.0
"""Steps of this many seconds give a rate."""

CHANGED = 1.33
"""How much the rate must differ, as a ratio, to look again at which mode is faster."""

FIRST_PAUSE_SECONDS = 20.0
"""Seconds of training between the first two trials; doubled for each further one."""


class RateWatch:
    """Compares the rate of a run with the one that a trial measured."""

    def __init__(self) -> None:
        self._expected = 0.0
        self._pause = FIRST_PAUSE_SECONDS
        self._settled = True
        self._since = 0.0
        self._steps, self._seconds = 0, 0.0
        self._has_changed = False

    def expect(self, rate: float, *, settled: bool) -> None:
        """Begin with the rate that was measured.

        Args:
            rate: Steps per second of the mode that was chosen.
            settled: Whether the measurement was undisturbed; another one follows after a pause if not.
        """
        self._pause = 2 * self._pause if self._expected else FIRST_PAUSE_SECONDS
        self._expected, self._settled = rate, settled
        self._since, self._steps, self._seconds = 0.0, 0, 0.0
        self._has_changed = False

    def add(self, chunk: ChunkResult) -> None:
        """Add a chunk in the mode that was chosen."""
        self._since += chunk.seconds
        self._steps += chunk.count
        self._seconds += chunk.seconds
        if self._seconds >= WINDOW_SECONDS:
            ratio = self._steps / self._seconds / self._expected if self._expected else 1.0
            self._has_changed = max(ratio, 1 / ratio) > CHANGED
            self._steps, self._seconds = 0, 0.0

    @property
    def has_expectation(self) -> bool:
        """Whether a rate was measured."""
        return self._expected > 0

    @property
    def is_settled(self) -> bool:
        """Whether the rate was measured, and undisturbed."""
        return self.has_expectation and self._settled

    @property
    def must_look_again(self) -> bool:
        """Whether another trial is due."""
        return self._since >= self._pause and (self._has_changed or not self._settled)
