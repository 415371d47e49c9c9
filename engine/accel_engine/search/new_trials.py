"""Trials that begin: their values, their runs, and the results that equal trials share."""

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from accel_engine import clock
from accel_engine.errors import DataError, ModelError, PlanError
from accel_engine.plan import affecting
from accel_engine.search.definition import StudyDefinition
from accel_engine.search.ranges import MAX_POINTS, all_points, count_points
from accel_engine.search.study_writer import StudyWriter
from accel_engine.search.trial import PendingAction, Trial, TrialState
from accel_engine.search.trial_plan import identity, trial_plan
from accel_engine.search.trial_runs import TrialRuns

REPEATS = 5
"""Proposals in a row with values that were tried, after which others are chosen at random from those that were not."""

MORE_REPEATS = 50
"""As many again, where the values cannot be counted."""

TRIAL_ERRORS = (PlanError, DataError, ModelError)
"""Errors of a trial's values; others concern the machine, and would meet the next trial as well."""

_NEEDS_MORE = ("batch_size", "window")
"""Fields whose larger values need more memory, all others being equal."""

_NEEDS_LESS = ("micro_batches",)
"""Fields whose larger values need less."""


class NewTrials:
    """Begins trials.

    Args:
        study: The search's study, which proposes their values.
        runs: Their runs.
    """

    def __init__(self, study: StudyWriter, runs: TrialRuns) -> None:
        self._study = study
        self._runs = runs
        self._exhausted: tuple[StudyDefinition, int] | None = None
        self._identities: dict[str, int] = {}
        self._identified: set[int] = set()

    @property
    def limit(self) -> str:
        """Why no further trial begins; empty if one may."""
        definition = self._study.definition
        if self._study.counted >= definition.trials:
            return "the only trial is done" if definition.trials == 1 else f"all {definition.trials} trials are done"
        if self._exhausted != (definition, self._study.counted):
            return ""
        is_finite = count_points(definition.parameters) is not None
        return "all combinations of values are tried" if is_finite else "no further proposal was new"

    def start(self) -> str:
        """Start another trial; returns why none was started, or an empty text."""
        if self.limit:
            return self.limit
        definition = self._study.definition
        points = count_points(definition.parameters)
        repeats = REPEATS if points is None or len(self._study.trials) < points else 0
        if any(self.add(self._study.propose()) for _ in range(repeats)) or self._start_untried(points):
            return ""
        self._exhausted = (definition, self._study.counted)
        return self.limit

    def _start_untried(self, points: int | None) -> bool:
        """Start a trial with values that no trial had, where they can be counted; returns whether there were any."""
        parameters = self._study.definition.parameters
        if points is None or points > MAX_POINTS:
            return any(self.add(self._study.propose()) for _ in range(MORE_REPEATS))
        untried = list(all_points(parameters))
        random.Random(self._study.definition.seed + len(self._study.trials)).shuffle(untried)  # noqa: S311 (no secret)
        for values in untried:
            if not self._is_tried(values):
                return self.add(self._study.propose(values))
        return False

    def _is_tried(self, values: dict[str, Any]) -> bool:
        try:
            same = self._with_same_plan(values)
        except PlanError:
            return any(each.values == values for each in self._study.trials.values())
        return same is not None or _known_to_fail(values, self._study.trials.values()) is not None

    def _with_same_plan(self, values: Mapping[str, Any]) -> Trial | None:
        """The trial that trains the same plan as some values would; ``None`` if there is none.

        Raises:
            PlanError: The values contradict each other.
        """
        for each in self._study.trials.values():
            if each.number not in self._identified:
                self._identified.add(each.number)
                if each.duplicate_of is None:
                    self._identities.setdefault(self._identity(each), each.number)
        same = identity(self._study.definition, values)
        number = self._identities.get(same)
        if number is not None and self._study.trials[number].state is TrialState.LOST:
            del self._identities[same]  # another trial may have these values now
            number = None
        return None if number is None else self._study.trials[number]

    def _identity(self, trial: Trial) -> str:
        try:
            return identity(self._study.definition, trial.values)
        except PlanError:
            return f"invalid {trial.number}"

    def add(self, trial: Trial) -> bool:
        """Add a trial that was proposed; returns whether it has its own run."""
        try:
            same = self._with_same_plan(trial.values)
        except PlanError as error:
            self._fail(trial, str(error))
            return True
        if same is not None:
            self._study.put(replace(trial, duplicate_of=same.number))
            self.share_results()
            return False
        if (failed := _known_to_fail(trial.values, self._study.trials.values())) is not None:
            reason = f"trial {failed.number}, which needs no more memory, ran out of it"
            shared = replace(trial, state=TrialState.OUT_OF_MEMORY, duplicate_of=failed.number, reason=reason)
            self._study.end(replace(shared, ended=clock.now()))
            return False
        self.create_run(self._study.put(trial))
        return True

    def create_run(self, trial: Trial) -> None:
        """Create and start the run of a trial, which fails if its plan does."""
        definition, number = self._study.definition, trial.number
        try:
            plan = trial_plan(definition, trial.values, number=number, epochs=trial.epochs)
            run = self._runs.create(plan, definition.name, number)
        except TRIAL_ERRORS as error:
            self._fail(trial, str(error))
            return
        self.start_run(self._study.put(replace(trial, run=run)))

    def start_run(self, trial: Trial) -> None:
        """Start the run of a trial, which waits; the trial fails if its run cannot be started."""
        try:
            hold_reason = self._runs.start(trial.run)
        except TRIAL_ERRORS as error:
            self._runs.stop(trial.run, str(error))
            self._fail(trial, str(error))
            return
        if not trial.pending:
            self._study.put(replace(trial, reason=hold_reason))

    def _fail(self, trial: Trial, reason: str) -> None:
        self._study.end(replace(trial, state=TrialState.FAILED, reason=reason, ended=clock.now()))

    def share_results(self) -> None:
        """End the trials that share the result of another one which has ended."""
        for trial in tuple(self._study.trials.values()):
            if trial.duplicate_of is None or not trial.state.live or trial.machine:
                continue
            same = self._study.trials[trial.duplicate_of]
            if not same.state.live and same.pending is not PendingAction.PAUSE:
                shared = replace(trial, state=same.state, objectives=same.objectives, reason=same.reason)
                self._study.end(replace(shared, ended=clock.now()))


def _known_to_fail(values: Mapping[str, Any], trials: Iterable[Trial]) -> Trial | None:
    """The trial that ran out of memory with values that need no more than these; ``None`` if there is none."""
    return next((each for each in trials if _needs_no_more(each, values)), None)


def _needs_no_more(trial: Trial, values: Mapping[str, Any]) -> bool:
    if trial.state is not TrialState.OUT_OF_MEMORY or trial.machine or trial.duplicate_of is not None:
        return False
    return trial.values.keys() == values.keys() and all(
        _needs_at_least(name, trial.values[name], value) for name, value in values.items()
    )


def _needs_at_least(name: str, failed: Any, value: Any) -> bool:
    if name not in affecting("memory") or failed == value:
        return True
    if failed is None or value is None:
        return False
    return (name in _NEEDS_MORE and value >= failed) or (name in _NEEDS_LESS and value <= failed)
