"""How long a race still takes, about."""

import time
from collections.abc import Callable

from accel_engine.measure.plan_trials import TURN_SECONDS, WARM_UP_SECONDS
from accel_engine.measure.remaining_time import RemainingTime
from accel_engine.measure.trial_room import MAX_CONCURRENT
from accel_engine.race.configuration import ConfigurationResult, ConfigurationState
from accel_engine.race.race import FIRST_SECONDS, SECONDS

_TO_COMPILE = (ConfigurationState.WAITING, ConfigurationState.COMPILING)
_TO_MEASURE = (ConfigurationState.READY, ConfigurationState.MEASURING)

_SHARE = MAX_CONCURRENT / (MAX_CONCURRENT - 1)
"""Turns of a group of the usual size as a multiple of those without the reference."""


class RaceTime(RemainingTime):
    """Measures how long configurations take to compile, and adds what the others need if none ends early.

    Args:
        seconds: How long each configuration is measured.
        clock: Monotonic seconds.
    """

    def __init__(self, seconds: float = SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self._seconds = seconds
        self._results: dict[str, ConfigurationResult] = {}

    def note(self, result: ConfigurationResult) -> None:
        """Take the result of a configuration, whenever it changes."""
        before = self._results.get(result.title)
        self._results[result.title] = result
        if result.state is ConfigurationState.COMPILING:
            self.begin()
        elif before and before.state is ConfigurationState.COMPILING:
            self.end(counts=result.state is ConfigurationState.READY)

    def of_race(self) -> float | None:
        """Seconds that the race still takes; ``None`` before the first configuration is compiled."""
        results = self._results.values()
        to_compile = sum(each.state in _TO_COMPILE for each in results)
        first = min(FIRST_SECONDS, self._seconds)
        each_measured = WARM_UP_SECONDS + first * 2 + (self._seconds - first) * _SHARE  # first beside the reference
        entered = [each for each in results if each.state in _TO_MEASURE and not each.configuration.is_reference]
        turns = sum(max(0.0, self._seconds - TURN_SECONDS * len(each.rates)) for each in entered)
        return self.seconds_left(to_compile, to_compile * each_measured + turns * _SHARE)
