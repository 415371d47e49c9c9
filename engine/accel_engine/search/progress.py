"""How far a search is."""

from collections.abc import Collection, Iterable

from accel_engine.search.definition import StudyDefinition
from accel_engine.search.trial import Trial


def trials_done(trials: Iterable[Trial]) -> int:
    """The number of trials that have ended, without those that share the result of another."""
    return sum(not each.state.live and each.duplicate_of is None for each in trials)


def seconds_left(
    definition: StudyDefinition, trials: Collection[Trial], spent: float, spent_at_end: float = 0.0
) -> float | None:
    """Seconds until all trials are done, at the pace of those that have ended; ``None`` before the first one has.

    Args:
        definition: The search.
        trials: Its trials.
        spent: Seconds for which the search has run.
        spent_at_end: The same when the last trial ended; 0 if unknown.
    """
    done, live = trials_done(trials), sum(each.state.live for each in trials)
    if not done or not spent:
        return None
    before = spent_at_end or spent
    pace, remaining = before / done, max(0, definition.trials - done)
    left = max(pace * remaining - (spent - before), pace * max(0, remaining - live))
    return left if definition.within is None else max(0.0, min(left, definition.within - spent))
