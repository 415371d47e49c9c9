"""Notices that a run has become slower or faster than when its execution mode was chosen."""

from accel_engine.training.core.loop import ChunkResult
from accel_engine.training.core.step_rate import StepRate

WINDOW_SECONDS = 2.0
"""Steps of this many seconds give a rate."""

CHANGED = 1.33
"""How much the rate must differ, as a ratio, to look again at which mode is faster."""

FIRST_PAUSE_SECONDS = 20.0
"""Seconds of training between the first two trials; doubled for each further one."""


class RateWatch:
    """Compares the rate of a run with the one that a trial measured.

    Attributes:
        is_settled: Whether a rate was measured, undisturbed.
    """

    def __init__(self) -> None:
        self._expected, self.is_settled = 0.0, False
        self._pause, self._since = 0.0, 0.0
        self._window = StepRate()
        self._has_changed = False

    def expect(self, rate: float, *, settled: bool) -> None:
        """Begin with the rate that was measured.

        Args:
            rate: Steps per second of the mode that was chosen.
            settled: Whether the measurement was undisturbed; another one follows after a pause if not.
        """
        self._expected, self.is_settled = rate, settled
        self._pause, self._since = 2 * self._pause or FIRST_PAUSE_SECONDS, 0.0
        self._window = StepRate()
        self._has_changed = False

    def add(self, chunk: ChunkResult) -> None:
        """Add a chunk in the mode that was chosen."""
        self._since += chunk.seconds
        self._window.add(chunk)
        if self._window.seconds >= WINDOW_SECONDS:
            ratio = self._window.value / self._expected if self._expected else 1.0
            self._has_changed = max(ratio, 1 / ratio) > CHANGED
            self._window = StepRate()

    @property
    def trial_is_due(self) -> bool:
        """Whether a trial is due: the first one at once."""
        return self._since >= self._pause and (self._has_changed or not self.is_settled)
