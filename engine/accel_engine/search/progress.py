"""How far a search is."""

from collections.abc import Collection, Iterable

from accel_engine.errors import UsageError
from accel_engine.search.definition import StudyDefinition
from accel_engine.search.trial import Trial, TrialState


def trials_done(trials: Iterable[Trial]) -> int:
    """The number of trials that have ended, without those that share the result of another."""
    return sum(not each.state.live and each.duplicate_of is None for each in trials)


def trials_counted(trials: Iterable[Trial]) -> int:
    """How many trials take part of the search's number: not those with shared results, nor lost ones."""
    return sum(each.duplicate_of is None and each.state is not TrialState.LOST for each in trials)


def check_enough(wanted: int, trials: Iterable[Trial]) -> None:
    """Check that a search is to have at least as many trials as it has.

    Raises:
        UsageError: It has more.
    """
    if wanted < (count := trials_counted(trials)):
        raise UsageError(f"the search has {count:,} trials already, more than {wanted:,}: choose {count:,} or more")


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
