"""Chooses between two execution modes whose loops are compiled."""

from accel_engine.training.autotuning.trial import Trial, TrialSpeeds
from accel_engine.training.core.loop import ChunkResult
from accel_engine.training.core.step_rate import StepRate

WINDOW_SECONDS = 2.0
"""Steps of this many seconds give a rate."""

_CHANGED = 1.33
"""How much the rate must differ, as a ratio, to look again at which mode is faster."""

FIRST_PAUSE_SECONDS = 20.0
"""Seconds of training between the first two trials; doubled for each further one."""


class ModeChoice:
    """Chooses by trials: the first one at once, others where the rate of the faster mode has changed."""

    def __init__(self) -> None:
        self._trial: Trial | None = None
        self._alternative_is_faster = False
        self._watch = RateWatch()

    @property
    def uses_alternative(self) -> bool:
        """Whether the alternative mode takes the next steps, rather than the plan's."""
        return self._trial.on_alternative if self._trial else self._alternative_is_faster

    @property
    def is_settled(self) -> bool:
        """Whether the faster mode is known, and no trial is going on."""
        return self._trial is None and self._watch.is_settled

    def use(self, speeds: TrialSpeeds) -> None:
        """Use the faster mode of a trial that has ended."""
        self._trial = None
        self._alternative_is_faster = speeds.alternative_is_faster
        self._watch.expect(max(speeds.default, speeds.alternative), settled=speeds.settled)

    def add(self, chunk: ChunkResult) -> TrialSpeeds | None:
        """Add a chunk of the mode in use; returns the rates of a trial that ends with it."""
        if self._trial is None:
            self._watch.add(chunk)
            self._trial = Trial() if self._watch.trial_is_due else None
            return None
        self._trial.add(chunk)
        if not self._trial.has_ended:
            return None
        speeds = self._trial.speeds
        self.use(speeds)
        return speeds


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
            self._has_changed = max(ratio, 1 / ratio) > _CHANGED
            self._window = StepRate()

    @property
    def trial_is_due(self) -> bool:
        """Whether a trial is due: the first one at once."""
        return self._since >= self._pause and (self._has_changed or not self.is_settled)
