"""How far a search is."""

from collections.abc import Iterable

from accel_engine.search.definition import StudyDefinition
from accel_engine.search.trial import Trial


def trials_done(trials: Iterable[Trial]) -> int:
    """The number of trials that have ended, without those that share the result of another."""
    return sum(not each.state.live and each.duplicate_of is None for each in trials)


def seconds_left(definition: StudyDefinition, done: int, spent: float) -> float | None:
    """Seconds until all trials are done, at the pace so far; ``None`` before the first one has ended.

    Args:
        definition: The search.
        done: As of :func:`trials_done`.
        spent: Seconds for which the search has run.
    """
    if not done or not spent:
        return None
    left = spent / done * max(0, definition.trials - done)
    return left if definition.within is None else max(0.0, min(left, definition.within - spent))
