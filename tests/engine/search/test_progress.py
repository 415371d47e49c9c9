"""How far a search is."""

from itertools import pairwise
from pathlib import Path

from accel_engine.search.progress import seconds_left
from accel_engine.search.trial import Trial, TrialState
from engine.search.searching import Search, define

DONE = [Trial(number, "r", TrialState.FINISHED, {}) for number in range(2)]
LIVE = Trial(2, "r", TrialState.RUNNING, {})


def test_the_time_left_counts_down_while_a_trial_trains_and_leaves_time_for_those_to_come() -> None:
    definition = define(trials=5)
    left = [seconds_left(definition, [*DONE, LIVE], spent, 60.0) for spent in (60.0, 70.0, 90.0, 120.0)]
    assert left == [90.0, 80.0, 60.0, 60.0]
    assert seconds_left(definition, [*DONE, LIVE], 70.0) == 105.0, "before the end of the last trial is noted"
    assert seconds_left(definition, [LIVE], 70.0) is None
    assert seconds_left(define(trials=5, within=75.0), [*DONE, LIVE], 70.0, 60.0) == 5.0


def test_a_search_notes_for_how_long_it_had_run_when_a_trial_ended(tmp_path: Path) -> None:
    noted: list[float] = []
    search = Search(define(trials=3, pruner="off"), tmp_path)
    search.run(lambda study: noted.append(study.database.part.spent_at_end))
    assert noted[0] == 0.0
    assert sum(before != after for before, after in pairwise(noted)) == 2, "the third trial is the last"
