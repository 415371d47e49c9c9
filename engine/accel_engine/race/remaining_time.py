"""How long a race still takes, about."""

import statistics
import time
from collections.abc import Callable

from accel_engine.measure.plan_trials import TURN_SECONDS, WARM_UP_SECONDS
from accel_engine.measure.trial_room import MAX_CONCURRENT
from accel_engine.race.configuration import ConfigurationResult, ConfigurationState
from accel_engine.race.race import FIRST_SECONDS, SECONDS

_TO_COMPILE = (ConfigurationState.WAITING, ConfigurationState.COMPILING)
_TO_MEASURE = (ConfigurationState.READY, ConfigurationState.MEASURING)

_SHARE = MAX_CONCURRENT / (MAX_CONCURRENT - 1)
"""Turns of a group of the usual size as a multiple of those without the reference."""


class RemainingTime:
    """Measures how long configurations take to compile, and adds what the others need if none ends early.

    Args:
        seconds: How long each configuration is measured.
        clock: Monotonic seconds.
    """

    def __init__(self, seconds: float = SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._results: dict[str, ConfigurationResult] = {}
        self._began = clock()
        self._compiled: list[float] = []

    def note(self, result: ConfigurationResult) -> None:
        """Take the result of a configuration, whenever it changes."""
        before = self._results.get(result.title)
        self._results[result.title] = result
        if result.state is ConfigurationState.COMPILING:
            self._began = self._clock()
        elif before and before.state is ConfigurationState.COMPILING and result.state is ConfigurationState.READY:
            self._compiled.append(self._clock() - self._began)

    def seconds_left(self) -> float | None:
        """Seconds; ``None`` before the first configuration is compiled."""
        if not self._compiled:
            return None
        results = self._results.values()
        is_compiling = any(each.state is ConfigurationState.COMPILING for each in results)
        compiling = min(self._clock() - self._began, self._each) if is_compiling else 0.0
        to_compile = sum(each.state in _TO_COMPILE for each in results)
        first = min(FIRST_SECONDS, self._seconds)
        alone = self._each + WARM_UP_SECONDS + first * 2  # beside the reference
        together = (self._seconds - first) * _SHARE
        entered = [each for each in results if each.state in _TO_MEASURE and not each.configuration.is_reference]
        turns = sum(max(0.0, self._seconds - TURN_SECONDS * len(each.rates)) for each in entered)
        return to_compile * (alone + together) - compiling + turns * _SHARE

    @property
    def _each(self) -> float:
        """Seconds from the start of a process to its compiled steps, on average."""
        return statistics.fmean(self._compiled)
