"""Compares the rates of two execution modes that take the steps of a run in turns."""

import statistics
from dataclasses import dataclass

from accel_engine.training.core.loop import ChunkResult
from accel_engine.training.core.step_rate import StepRate

TURN_SECONDS = 0.1
"""How long a turn takes at least."""

TURN_CHUNKS = 2
"""The fewest chunks of a turn."""

ROUNDS = 5
"""Turns of each mode."""

CLEAR_ROUNDS = 2
"""Turns of each mode after which a clear difference is enough."""

CLEAR = 1.5
"""A clear difference, as a ratio of the rates."""

DISTINCT = 1.05
"""A difference, as a ratio of the rates, that counts although one round says otherwise."""


@dataclass(frozen=True, slots=True)
class TrialSpeeds:
    """The rates that a trial measured.

    Attributes:
        default: Steps per second in the plan's mode; the median of its turns.
        alternative: Steps per second in the alternative mode; 0 if it cannot run the step.
        settled: Whether the rounds agree; not where something else used the machine.
    """

    default: float
    alternative: float
    settled: bool = True

    @property
    def alternative_is_faster(self) -> bool:
        """Whether the alternative mode is the faster one."""
        return self.alternative > self.default

    @property
    def gain(self) -> float:
        """The rate of the faster mode, divided by that of the plan's mode; at least 1."""
        return max(1.0, self.alternative / self.default)


class Trial:
    """Collects the rates of turns.

    The alternative mode begins with a turn that does not count, in which the length of its chunks is adapted. Then
    both take turns, so that what slows the machine down for longer than a turn slows both.

    Attributes:
        on_alternative: Whether it is the turn of the alternative mode.
    """

    def __init__(self) -> None:
        self.on_alternative = True
        self._warm = False
        self._rates: tuple[list[float], list[float]] = ([], [])
        self._turn = StepRate()

    def add(self, chunk: ChunkResult) -> None:
        """Add a chunk of the mode whose turn it is."""
        self._turn.add(chunk)
        if self._turn.chunks < TURN_CHUNKS or self._turn.seconds < TURN_SECONDS:
            return
        if self._warm:
            self._rates[self.on_alternative].append(self._turn.value)
        self._warm = True
        self.on_alternative = not self.on_alternative
        self._turn = StepRate()

    @property
    def has_ended(self) -> bool:
        """Whether there are enough rounds."""
        ratios = self._ratios
        if len(self._rates[0]) != len(self._rates[1]) or len(ratios) < CLEAR_ROUNDS:
            return False
        return len(ratios) >= ROUNDS or min(ratios) > CLEAR or max(ratios) < 1 / CLEAR

    @property
    def speeds(self) -> TrialSpeeds:
        """The rates of a trial that has ended."""
        ratios = self._ratios
        faster = sum(ratio > 1 for ratio in ratios)
        dissent, middle = min(faster, len(ratios) - faster), statistics.median(ratios)
        distinct = max(middle, 1 / middle) > DISTINCT
        default, alternative = map(statistics.median, self._rates)
        return TrialSpeeds(default, alternative, settled=dissent == 0 or (dissent == 1 and distinct))

    @property
    def _ratios(self) -> list[float]:
        """The alternative's rate divided by the default's, of each round."""
        return [alternative / default for default, alternative in zip(*self._rates, strict=False)]
