"""The trials and reports of a search in memory, which are written to its database as they change."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from optuna.trial import TrialState as OptunaState

from accel_engine import clock
from accel_engine.errors import PlanError
from accel_engine.search.definition import StudyDefinition
from accel_engine.search.parameter_names import RemoteTrial
from accel_engine.search.progress import trials_counted
from accel_engine.search.proposals import Proposals
from accel_engine.search.study_database import StudyDatabase
from accel_engine.search.trial import Trial, TrialReport, TrialState
from accel_engine.search.trial_plan import identity

_STATES = {
    OptunaState.WAITING: TrialState.WAITING,
    OptunaState.RUNNING: TrialState.RUNNING,
    OptunaState.COMPLETE: TrialState.FINISHED,
    OptunaState.PRUNED: TrialState.PRUNED,
}


class TrialStore:
    """The trials of a search.

    Args:
        database: The search; its trials and reports are read.
    """

    def __init__(self, database: StudyDatabase) -> None:
        self._database = database
        self._trials = {trial.number: trial for trial in database.trials()}
        self._reports: dict[int, dict[int, TrialReport]] = {}
        for report in database.reports()[1]:
            self._reports.setdefault(report.trial, {})[report.step] = report
        self._identities: dict[str, int] = {}
        self._identified: set[int] = set()

    def __iter__(self) -> Iterator[Trial]:
        return iter(list(self._trials.values()))

    def __getitem__(self, number: int) -> Trial:
        return self._trials[number]

    def __contains__(self, number: int) -> bool:
        return number in self._trials

    def get(self, number: int) -> Trial | None:
        """A trial; ``None`` if there is none of this number."""
        return self._trials.get(number)

    def __len__(self) -> int:
        return len(self._trials)

    def put(self, trial: Trial) -> Trial:
        """Add or replace a trial; returns it."""
        if self._trials.get(trial.number) != trial:
            self._database.put_trial(trial)
            self._trials[trial.number] = trial
        return trial

    def reports(self, number: int) -> list[TrialReport]:
        """The reports of a trial by step."""
        found = self._reports.get(number, {})
        return [found[step] for step in sorted(found)]

    def values(self) -> Mapping[int, Sequence[float]]:
        """The reported values of each trial that has not failed, in order."""
        numbers = [each.number for each in self if each.number in self._reports and not each.state.failed]
        return {number: [each.value for each in self.reports(number)] for number in numbers}

    def add_report(self, report: TrialReport) -> bool:
        """Add a report; returns whether it is new."""
        known = self._reports.setdefault(report.trial, {})
        if report.step in known and known[report.step].value == report.value:
            return False
        self._database.add_report(report)
        known[report.step] = report
        return True

    @property
    def own(self) -> list[Trial]:
        """The trials of this machine that have runs of their own."""
        return [each for each in self if not each.machine and each.duplicate_of is None]

    @property
    def live(self) -> list[Trial]:
        """The trials of this machine whose runs train, or will."""
        return [each for each in self.own if each.state.live]

    @property
    def others_live(self) -> bool:
        """Whether a trial of another machine trains, or will."""
        return any(each.machine and each.state.live for each in self)

    @property
    def counted(self) -> int:
        """How many trials take part of the search's number."""
        return trials_counted(self)

    def with_same_plan(self, definition: StudyDefinition, values: Mapping[str, Any]) -> Trial | None:
        """The trial that trains the same plan as some values would; ``None`` if there is none.

        Raises:
            PlanError: The values contradict each other.
        """
        for each in self:
            if each.number not in self._identified:
                self._identified.add(each.number)
                if each.duplicate_of is None and each.seed is None and each.values:
                    self._identities.setdefault(self._identity(definition, each), each.number)
        same = identity(definition, values)
        number = self._identities.get(same)
        if number is not None and self[number].state is TrialState.LOST:
            del self._identities[same]  # another trial may have these values now
            number = None
        return None if number is None else self[number]

    def _identity(self, definition: StudyDefinition, trial: Trial) -> str:
        try:
            return identity(definition, trial.values)
        except PlanError:
            return f"invalid {trial.number}"


def ended_by_time(trials: Iterator[Trial] | Sequence[Trial]) -> list[Trial]:
    """The trials with runs that have ended, oldest first."""
    own = [each for each in trials if each.duplicate_of is None and each.state is not TrialState.LOST]
    ended = [each for each in own if each.ended is not None and not each.state.live]
    return sorted(ended, key=lambda each: (each.ended or 0.0, each.number))


def take_over(book: TrialStore, database: StudyDatabase, proposals: Proposals) -> None:
    """Take over the trials of other machines, and their changes of ranges and of the number of trials."""
    for remote in proposals.others():
        if remote.state in _STATES and remote.values:
            known = book.get(remote.number)
            found = _remote_trial(remote, proposals.definition)
            if known is None or known.state.live or (known.state, known.machine) != (found.state, found.machine):
                book.put(found)
                for number, value in remote.reports.items():
                    book.add_report(TrialReport(remote.number, number, number, remote.started, value))
    theirs, ours = proposals.shared_definition(), proposals.definition
    if (theirs.parameters, theirs.trials) != (ours.parameters, ours.trials):
        changed = replace(ours, parameters=theirs.parameters, trials=theirs.trials)
        database.set_definition(changed)
        proposals.set_definition(changed, share=False)


def _remote_trial(remote: RemoteTrial, definition: StudyDefinition) -> Trial:
    names = [each.name for each in definition.objectives]
    state = _STATES[remote.state]
    if remote.is_lost:
        state = TrialState.LOST
    elif remote.has_failed:
        state = TrialState.OUT_OF_MEMORY if remote.reason == "out of memory" else TrialState.FAILED
    return Trial(
        number=remote.number,
        run="",
        state=state,
        values=remote.values,
        objectives=dict(zip(names, remote.results, strict=False)),
        reason="its machine no longer responds" if remote.is_lost else remote.reason,
        started=remote.started,
        ended=clock.now() if remote.is_lost else remote.ended,
        machine=remote.machine,
        proposal=remote.proposal,
    )
