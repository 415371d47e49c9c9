"""How far a search is, and why it ends."""

from collections.abc import Collection, Iterable, Sequence

from accel_engine.errors import UsageError
from accel_engine.search.definition import FIGURES, StudyDefinition, better
from accel_engine.search.trial import Trial, TrialState
from accel_engine.search.trial_runs import Observation

FIRST_FAILURES = 3
"""After this number of first trials that fail for the same reason, the search ends."""


def trials_done(trials: Iterable[Trial]) -> int:
    """The number of trials that have ended, without those that share the result of another."""
    return sum(not each.state.live and each.duplicate_of is None for each in trials)


def trials_counted(trials: Iterable[Trial]) -> int:
    """How many trials count towards the search's number: not those with shared results, nor lost ones."""
    return sum(each.duplicate_of is None and each.state is not TrialState.LOST for each in trials)


def check_enough(wanted: int, trials: Iterable[Trial]) -> None:
    """Check that the wanted number of trials is not below the number that a search has.

    Raises:
        UsageError: The search has more trials.
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


def common_failure(trials: Sequence[Trial], since: float) -> str:
    """Why a search fails as the first trials of a process have all failed for the same reason; empty if they have not.

    Lack of memory is no such reason: it depends on the values, and trials that need as much are not tried again.

    Args:
        trials: All trials with their own runs.
        since: When the process began, in seconds since the Unix epoch: what failed before may succeed now.
    """
    ended = [each for each in _ended_by_time(trials) if each.state is not TrialState.OUT_OF_MEMORY]
    first = [each for each in ended if (each.ended or 0.0) >= since][:FIRST_FAILURES]
    reasons = {each.reason for each in first}
    if len(first) < FIRST_FAILURES or len(reasons) > 1 or not all(each.state.failed for each in ended):
        return ""
    return f"the first {FIRST_FAILURES} trials have all failed: {reasons.pop()}"


def missing_metric(definition: StudyDefinition, trial: Trial, observation: Observation) -> str:
    """Why a search fails as a finished trial does not report a metric; empty if it reports all."""
    if trial.state is not TrialState.FINISHED:
        return ""
    known = {name: None for each in observation.measurements for name in each.metrics}
    for objective in definition.objectives:
        if objective.name not in known and objective.name not in FIGURES:
            there = f"there are {', '.join(known)}" if known else "it reports no metric at all"
            return f"no trial reports {objective.name}; {there}: choose one with --monitor or --objective"
    return ""


def _without_improvement(definition: StudyDefinition, trials: Sequence[Trial]) -> int:
    """The number of ended trials since the best one of the monitor."""
    monitor, best, waited = definition.objectives[0], None, 0
    for trial in _ended_by_time(trials):
        value = trial.objectives.get(monitor.name)
        if value is not None and (best is None or better(monitor, value, best)):
            best, waited = value, 0
        else:
            waited += 1
    return waited


def stop_reason(definition: StudyDefinition, trials: Sequence[Trial], spent: float) -> str:
    """Why no trial starts or continues any more; empty if one may.

    Args:
        definition: The search.
        trials: All trials.
        spent: Seconds for which the search has run.
    """
    if definition.within is not None and spent >= definition.within:
        return f"the time of {definition.within:g} s is over"
    if definition.patience and _without_improvement(definition, trials) >= definition.patience:
        return f"no better trial in {definition.patience} trials"
    return ""


def _ended_by_time(trials: Sequence[Trial]) -> list[Trial]:
    """The trials with runs that have ended, oldest first."""
    own = [each for each in trials if each.duplicate_of is None and each.state is not TrialState.LOST]
    ended = [each for each in own if each.ended is not None and not each.state.live]
    return sorted(ended, key=lambda each: (each.ended or 0.0, each.number))
