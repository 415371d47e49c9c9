"""The study of a search, as the process that runs the search writes it: proposals, and what becomes of their runs."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import optuna
from optuna.samplers import RandomSampler
from optuna.trial import FrozenTrial, create_trial
from optuna.trial import TrialState as OptunaState

from accel_engine import clock
from accel_engine.json_values import to_plain
from accel_engine.private_names.optuna_names import completed_rungs, last_rung, set_constraint
from accel_engine.search import samplers
from accel_engine.search.definition import AUTO
from accel_engine.search.progress import trials_counted
from accel_engine.search.storage import Members
from accel_engine.search.study_reader import REPORT, TRIAL, StudyReader
from accel_engine.search.trial import Trial, TrialReport, TrialState

CONFIRMS = "accel_tui_confirms"
"""Begins the name of the attribute of Optuna's study with the member that confirms a trial, whose number ends it."""

FEASIBLE = "feasible"
"""Name of Optuna's constraint that a trial has failed, also for lack of memory: more than 0 if it has."""


class StudyWriter(StudyReader):
    """The trials of a search, in the process that runs it.

    Args:
        directory: The search's directory, whose lock this process holds.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, is_writer=True)
        with self._reaching():
            self._id = self._storage.get_study_id_from_name(directory.name)
        self._members = Members(self._study, self.member)
        self._study.pruner = samplers.pruner_of(self.definition)
        self.sync()

    @property
    def own(self) -> list[Trial]:
        """The trials of this machine that have their own runs."""
        return [each for each in self.trials.values() if not each.machine and each.duplicate_of is None]

    @property
    def live(self) -> list[Trial]:
        """The trials of this machine whose runs train, or will."""
        return [each for each in self.own if each.state.live]

    @property
    def others_live(self) -> bool:
        """Whether a trial of another machine trains, or will."""
        return any(each.machine and each.state.live for each in self.trials.values())

    @property
    def counted(self) -> int:
        """How many trials count towards the search's number."""
        return trials_counted(self.trials.values())

    @property
    def values(self) -> Mapping[int, Sequence[float]]:
        """The reported values of each trial that has not failed, in order."""
        return {
            number: [each.value for each in reports.values()]
            for number, reports in self.reports.items()
            if reports and not self.trials[number].state.failed
        }

    @property
    def uses_rungs(self) -> bool:
        """Whether a pruned trial may be continued: where the pruner compares trials at rungs."""
        return samplers.pruner_name(self.definition) in ("hyperband", "asha")

    def sync(self) -> None:
        """Of a shared study, say that this machine runs, and read what the others have done."""
        if not self.is_shared:
            return
        with self._reaching():
            self._members.update()
        if self._members.lost != self.database.part.lost_members:
            self.database.update(lost_members=self._members.lost)
        before = self.definition
        self.refresh()
        if self.definition != before:
            self._study.pruner = samplers.pruner_of(self.definition)

    def redefine(self, **changes: Any) -> None:
        """Change what is searched, and propose by that from now on."""
        super().redefine(**changes)
        self._study.pruner = samplers.pruner_of(self.definition)

    def claim_confirmation(self, trial: int) -> bool:
        """Claim to confirm a trial unless another member has that is not lost; returns whether this one confirms it.

        Of members that claim it at the same moment the last one confirms it: ask again after a moment.
        """
        name = f"{CONFIRMS}_{trial}"
        with self._reaching():
            member = self._study.user_attrs.get(name)
            if member is None or self._members.is_lost(member):
                self._study.set_user_attr(name, self.member)
                return True
            return bool(member == self.member)

    def propose(self, values: Mapping[str, Any] | None = None) -> Trial:
        """Make a proposal: a trial that waits, and is yet to be :meth:`put`.

        Args:
            values: The values to propose; by default the sampler's.
        """
        ranges = samplers.distributions(self.definition.parameters)
        with self._reaching():
            if values is None:
                before = self._study.get_trials(deepcopy=False)
                self._study.sampler = samplers.sampler_of(self.definition, _count_proposals(before))
                number = self._study.ask(ranges).number
                self._study.sampler = RandomSampler()  # does nothing after a trial, where a grid's stops the study
            else:
                params = {name: samplers.as_categorical(values[name]) for name in ranges}
                number = self._add(create_trial(state=OptunaState.RUNNING, params=params, distributions=ranges))
            return self._new_trial(self._proposal(number))

    def unfinished(self) -> Iterator[Trial]:
        """The proposals that a killed process has not :meth:`put`; incomplete ones are dropped.

        Those of a shared study are left, as they do not say who made them.
        """
        with self._reaching():
            running = () if self.is_shared else self._study.get_trials(deepcopy=False, states=(OptunaState.RUNNING,))
            for each in running:
                if TRIAL not in each.user_attrs and len(each.params) == len(self.definition.parameters):
                    yield self._new_trial(each)
                elif TRIAL not in each.user_attrs:
                    self._study.tell(each.number, state=OptunaState.FAIL)

    def _new_trial(self, proposal: FrozenTrial) -> Trial:
        values = samplers.field_values(self.definition.parameters, proposal.params)
        return Trial(proposal.number, "", TrialState.WAITING, values, started=clock.now(), member=self.member)

    def put(self, trial: Trial) -> Trial:
        """Add or replace a trial of this machine; returns it."""
        if self.trials.get(trial.number) != trial:
            with self._reaching():
                self._storage.set_trial_user_attr(self._trial_id(trial.number), TRIAL, to_plain(trial))
            self._set(trial)
        return trial

    def _set(self, trial: Trial) -> None:
        self.trials[trial.number] = self._stored[trial.number] = trial
        self.reports.setdefault(trial.number, {})

    def add_report(self, number: int, report: TrialReport) -> None:
        """Add a report of a trial, of which a continued one may have another; its number is from 1."""
        with self._reaching():
            values = [report.epoch, report.step, report.time, report.value]
            self._storage.set_trial_user_attr(self._trial_id(report.trial), f"{REPORT}{number}", values)
        self.reports[report.trial][number] = report

    def should_prune(self, number: int, report: TrialReport) -> bool:
        """Tell the pruner a report, before it is added; returns whether it ends the trial.

        A killed process may have asked already, if it has not added the report. Optuna notes that a trial has completed
        a rung, and answers once for each.
        """
        if len(self.definition.objectives) > 1:
            return False  # Optuna has no reports of trials with several objectives
        with self._reaching():
            before = self._proposal(report.trial)
            self._storage.set_trial_intermediate_value(self._trial_id(report.trial), number, report.value)
            trial = self._proposal(report.trial)
            rung = last_rung(trial) if number in before.intermediate_values else ""
            # It is asked also while nothing is pruned, as it notes the values that others are compared with.
            is_worse = self._would_prune(trial, rung) if rung else self._study.pruner.prune(self._study, trial)
            return is_worse and not self._is_too_early

    @property
    def _is_too_early(self) -> bool:
        """Whether too few trials have a result for the automatic choice of a pruner to end one."""
        if self.definition.pruner != AUTO:
            return False
        return len(self._study.get_trials(deepcopy=False, states=(OptunaState.COMPLETE,))) < samplers.STARTUP_TRIALS

    def _would_prune(self, trial: FrozenTrial, rung: str) -> bool:
        """The pruner's answer in a copy in memory, in which the trial has not completed a rung."""
        copy = optuna.create_study(
            study_name=self.definition.name,
            directions=self._study.directions,
            pruner=samplers.pruner_of(self.definition),
        )
        for each in self._study.get_trials(deepcopy=True):
            if each.number == trial.number:
                each.system_attrs.pop(rung)
            copy.add_trial(each)
        return copy.pruner.prune(copy, copy.get_trials()[trial.number])

    def end(self, trial: Trial) -> None:
        """Put a trial that has ended, and tell the sampler, after which Optuna's trial cannot change.

        Samplers take a trial that has failed, also for lack of memory, as worse than any other, whatever it has
        reported.
        """
        self.put(trial)
        names = [each.name for each in self.definition.objectives]
        values = [trial.objectives[name] for name in names if name in trial.objectives]
        is_whole = trial.state in (TrialState.FINISHED, TrialState.STOPPED) and len(values) == len(names)
        with self._reaching():
            proposal = self._proposal(trial.number)
            if proposal.state.is_finished():
                return
            if trial.state.failed and FEASIBLE not in proposal.constraints:
                set_constraint(self._study, self._trial_id(trial.number), FEASIBLE, 1.0)
            state = OptunaState.COMPLETE if is_whole else OptunaState.PRUNED
            self._study.tell(proposal.number, values if is_whole else None, state)

    def continue_(self, trial: Trial) -> Trial:
        """Put an ended trial that is continued; another one of Optuna's stands for it if its own has a result."""
        with self._reaching():
            before = self._proposal(trial.number)
            if not before.state.is_finished():
                return self.put(trial)
            again = create_trial(
                state=OptunaState.RUNNING,
                params=before.params,
                distributions=before.distributions,
                intermediate_values=before.intermediate_values,
                user_attrs={**before.user_attrs, TRIAL: to_plain(trial)},
                system_attrs=dict(completed_rungs(before)) if samplers.pruner_name(self.definition) == "asha" else {},
            )
            self._proposals[trial.number] = self._add(again)
        self._set(trial)
        return trial

    def _add(self, proposal: FrozenTrial) -> int:
        """Add one of Optuna's trials; returns its number."""
        return self._storage.get_trial_number_from_id(self._storage.create_new_trial(self._id, proposal))

    def _trial_id(self, number: int) -> int:
        """The id of Optuna's trial that stands for ours."""
        return self._storage.get_trial_id_from_study_id_trial_number(self._id, self._proposals.get(number, number))

    def _proposal(self, number: int) -> FrozenTrial:
        return self._storage.get_trial(self._trial_id(number))


def _count_proposals(trials: Sequence[FrozenTrial]) -> int:
    """How many proposals there were, without those that a killed process left and those that continue another."""
    return sum(
        each.state is not OptunaState.FAIL and each.user_attrs.get(TRIAL, {}).get("number", each.number) == each.number
        for each in trials
    )
