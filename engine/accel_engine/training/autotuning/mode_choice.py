"""Chooses between two execution modes whose loops are compiled."""

from accel_engine.training.autotuning.rate_watch import RateWatch
from accel_engine.training.autotuning.trial import Trial, TrialSpeeds
from accel_engine.training.core.loop import ChunkResult


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
