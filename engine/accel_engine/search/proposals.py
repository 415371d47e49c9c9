"""The proposals of a search: Optuna's study behind a few plain calls, in a storage that machines may share."""

import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.samplers import RandomSampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, create_trial
from optuna.trial import TrialState as OptunaState

from accel_engine.json_values import decode
from accel_engine.private_names.optuna_names import completed_rungs, last_rung, set_constraint
from accel_engine.search.definition import AUTO, Objective, StudyDefinition
from accel_engine.search.parameter_names import (
    CONTINUES,
    FEASIBLE,
    MACHINE,
    MEMBER,
    PASSED,
    REASON,
    RUN,
    RemoteTrial,
    machine_names,
    remote_trial,
    suggest_values,
    trial_with,
    values_of,
)
from accel_engine.search.samplers import STARTUP_TRIALS, pruner_name, pruner_of, sampler_of
from accel_engine.search.storage import DEFINITION, Members, open_storage, reaching, shared_text

CONFIRMS = "accel_tui_confirms"
"""Begins the name of the attribute of Optuna's study with the member that confirms a trial, whose number ends it."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposal of the sampler.

    Attributes:
        number: Its number in Optuna's storage.
        values: Values of fields by name.
    """

    number: int
    values: Mapping[str, Any]


class Proposals:
    """Proposes values, and takes what became of them.

    Args:
        definition: The search.
        storage: Path of a journal file, or URL of a database.
        member: What tells the trials of this process from those of others on the storage.
        is_shared: Whether other machines may use the storage.

    Raises:
        RunError: The storage cannot be reached, read or written. All methods raise it, too.
        UsageError: Another search of this name is on the storage.
    """

    def __init__(self, definition: StudyDefinition, storage: str, member: str, *, is_shared: bool) -> None:
        self._address = storage
        self._member = member
        self.is_shared = is_shared
        self.definition = definition
        with reaching(storage):
            self._storage = open_storage(storage, is_own=not is_shared)
            self._study = self._open()
        self._members = Members(self._study, member)

    def _open(self) -> Study:
        directions = [_direction(each) for each in self.definition.objectives]
        study = optuna.create_study(
            storage=self._storage,
            study_name=self.definition.name,
            directions=directions,
            sampler=RandomSampler(),
            pruner=pruner_of(self.definition),
            load_if_exists=True,
        )
        if DEFINITION not in study.user_attrs:
            study.set_user_attr(DEFINITION, shared_text(self.definition))
        return study

    def claim_confirmation(self, trial: int) -> bool:
        """Claim to confirm a trial unless another member has that is not lost; returns whether this one confirms it.

        Of members that claim it at the same moment the last one confirms it: ask again after a moment.
        """
        name = f"{CONFIRMS}_{trial}"
        with reaching(self._address):
            member = self._study.user_attrs.get(name)
            if member is None or self._members.is_lost(member):
                self._study.set_user_attr(name, self._member)
                return True
            return bool(member == self._member)

    @property
    def uses_rungs(self) -> bool:
        """Whether a pruned trial may be continued: where the pruner compares trials at rungs."""
        return pruner_name(self.definition) in ("hyperband", "asha")

    def shared_definition(self) -> StudyDefinition:
        """The search as the storage has it; another machine may have changed a range or the number of trials."""
        with reaching(self._address):
            return decode(self._study.user_attrs[DEFINITION], StudyDefinition)

    def set_definition(self, definition: StudyDefinition, *, share: bool = True) -> None:
        """Propose by another definition from now on."""
        self.definition = definition
        with reaching(self._address):
            self._study.pruner = pruner_of(definition)
            if share:
                self._study.set_user_attr(DEFINITION, shared_text(definition))

    def propose(self, values: Mapping[str, Any] | None = None) -> Proposal:
        """Make a proposal.

        Args:
            values: The values to propose; by default the sampler's.

        Raises:
            UsageError: A value is in no range that its field has, or had.
        """
        with reaching(self._address):
            before = self._study.get_trials(deepcopy=False)
            number = self._sampled(before) if values is None else self._fixed(values, before)
            return Proposal(number, values_of(self.definition.parameters, self._frozen(number)))

    def _sampled(self, before: Sequence[FrozenTrial]) -> int:
        """Add a trial with the sampler's values; returns its number."""
        self._study.sampler = sampler_of(self.definition, _count_proposals(before))
        trial = self._study.ask()
        for name, value in self._attributes.items():
            trial.set_user_attr(name, value)
        suggest_values(trial, self.definition.parameters, before)
        self._study.sampler = RandomSampler()  # does nothing after a trial, where that of a grid stops the study
        return trial.number

    def _fixed(self, values: Mapping[str, Any], before: Sequence[FrozenTrial]) -> int:
        """Add a trial with given values; returns its number."""
        return self._add(trial_with(self.definition.parameters, values, before), {})

    def _add(self, trial: FrozenTrial, attributes: Mapping[str, Any]) -> int:
        """Add a trial to the storage; returns its number."""
        for name, value in {**self._attributes, **attributes}.items():
            trial.set_user_attr(name, value)
        study = self._storage.get_study_id_from_name(self.definition.name)
        return self._storage.get_trial_number_from_id(self._storage.create_new_trial(study, trial))

    @property
    def _attributes(self) -> dict[str, Any]:
        return {MEMBER: self._member, MACHINE: socket.gethostname()}

    def unfinished(self) -> Iterator[Proposal]:
        """This member's proposals that have no result; those that a killed process left incomplete are dropped."""
        with reaching(self._address):
            for each in self._study.get_trials(deepcopy=False, states=(OptunaState.RUNNING,)):
                if each.user_attrs.get(MEMBER, "" if self.is_shared else self._member) != self._member:
                    continue
                values = values_of(self.definition.parameters, each)
                if each.user_attrs.get(CONTINUES) is None and len(values) == len(self.definition.parameters):
                    yield Proposal(each.number, values)
                elif each.user_attrs.get(CONTINUES) is None:
                    self._study.tell(each.number, state=OptunaState.FAIL)

    def note_run(self, proposal: int, run: str) -> None:
        """Note the run of a proposal, for those who look at the storage."""
        with reaching(self._address):
            self._storage.set_trial_user_attr(self._id(proposal), RUN, run)

    def report(self, proposal: int, value: float, number: int) -> None:
        """Report the monitor's value.

        Args:
            proposal: Number of the proposal.
            value: The value.
            number: Which of its reports it is, from 1.
        """
        if len(self.definition.objectives) > 1:
            return  # Optuna has none of trials with several objectives
        with reaching(self._address):
            if number not in self._frozen(proposal).intermediate_values:
                self._storage.set_trial_intermediate_value(self._id(proposal), number, value)

    def should_prune(self, proposal: int, *, again: bool = False) -> bool:
        """Whether the pruner ends a trial, by its last report.

        Args:
            proposal: Number of the proposal.
            again: Whether a killed process may have asked already. If it let the trial train on, this holds:
                trials that have reported since then might change the answer.
        """
        if pruner_name(self.definition) == "off":
            return False
        with reaching(self._address):
            trial = self._frozen(proposal)
            if again and trial.user_attrs.get(PASSED) == trial.last_step:
                return False
            if again and (rung := last_rung(trial)):
                is_worse = self._would_prune(proposal, rung)
            else:  # also while nothing is pruned, as it notes the values that others are compared with
                is_worse = self._study.pruner.prune(self._study, trial)
            is_pruned = is_worse and not self._is_too_early
            if not is_pruned:
                self._storage.set_trial_user_attr(self._id(proposal), PASSED, trial.last_step)
            return is_pruned

    @property
    def _is_too_early(self) -> bool:
        """Whether too few trials have a result for the automatic choice of a pruner to end one."""
        if self.definition.pruner != AUTO:
            return False
        return len(self._study.get_trials(deepcopy=False, states=(OptunaState.COMPLETE,))) < STARTUP_TRIALS

    def _would_prune(self, proposal: int, rung: str) -> bool:
        """The answer again: Optuna notes that a trial has completed a rung, and answers once for each.

        It is asked of a copy in memory, in which the trial has not completed its last rung.
        """
        copy = optuna.create_study(
            study_name=self.definition.name,
            directions=self._study.directions,
            pruner=pruner_of(self.definition),
        )
        for each in self._study.get_trials(deepcopy=True):
            if each.number == proposal:
                each.system_attrs.pop(rung)
            copy.add_trial(each)
        return copy.pruner.prune(copy, copy.get_trials()[proposal])

    def finish(
        self, proposal: int, results: Sequence[float] | None, reason: str = "", *, has_failed: bool = False
    ) -> None:
        """Take the result of a trial; nothing happens if it has one.

        Args:
            proposal: Number of the proposal.
            results: The objectives' values; ``None`` for a trial that was pruned or has failed.
            reason: Why it has none.
            has_failed: Whether it has failed, also for lack of memory. Optuna's samplers take it as worse than any
                other, whatever it has reported.
        """
        with reaching(self._address):
            trial = self._frozen(proposal)
            if trial.state.is_finished():
                return
            if reason:
                self._storage.set_trial_user_attr(self._id(proposal), REASON, reason)
            if has_failed and FEASIBLE not in trial.constraints:
                set_constraint(self._study, self._id(proposal), FEASIBLE, 1.0)
            state = OptunaState.PRUNED if results is None else OptunaState.COMPLETE
            self._study.tell(proposal, None if results is None else list(results), state)

    def continue_(self, number: int, proposal: int) -> int:
        """Take up a trial that has a result; Optuna changes no such trial, so that another one stands for it.

        Args:
            number: The trial's number.
            proposal: Number of the proposal that has ended.

        Returns:
            The number of the new one.
        """
        with reaching(self._address):
            for each in self._study.get_trials(deepcopy=False, states=(OptunaState.RUNNING,)):
                if each.user_attrs.get(CONTINUES) == number and each.user_attrs.get(MEMBER) == self._member:
                    return each.number  # a killed process has done so
            before = self._frozen(proposal)
            again = create_trial(
                state=OptunaState.RUNNING,
                params=before.params,
                distributions=before.distributions,
                intermediate_values=before.intermediate_values,
                system_attrs=dict(completed_rungs(before)) if pruner_name(self.definition) == "asha" else {},
            )
            return self._add(again, {CONTINUES: number, PASSED: before.last_step})

    def others(self) -> Iterator[RemoteTrial]:
        """The trials of other machines, each as of its last continuation; tells those that this one is alive."""
        if not self.is_shared:
            return
        latest, hosts = dict[int, FrozenTrial](), {self._member: socket.gethostname()}
        with reaching(self._address):
            self._members.update()
            for each in self._study.get_trials(deepcopy=False):
                if each.user_attrs.get(MEMBER, self._member) != self._member:
                    latest[each.user_attrs.get(CONTINUES, each.number)] = each
                    hosts[each.user_attrs[MEMBER]] = str(each.user_attrs.get(MACHINE, ""))
        machines = machine_names(hosts)
        for number, each in latest.items():
            member, values = each.user_attrs[MEMBER], values_of(self.definition.parameters, each)
            yield remote_trial(number, each, values, machines[member], is_lost=self._members.is_lost(member))

    def _id(self, number: int) -> int:
        study = self._storage.get_study_id_from_name(self.definition.name)
        return self._storage.get_trial_id_from_study_id_trial_number(study, number)

    def _frozen(self, number: int) -> FrozenTrial:
        return self._storage.get_trial(self._id(number))


def _direction(objective: Objective) -> StudyDirection:
    return StudyDirection.MAXIMIZE if objective.maximize else StudyDirection.MINIMIZE


def _count_proposals(trials: Sequence[FrozenTrial]) -> int:
    """How many proposals there were, without those that a killed process left and those that continue another."""
    return sum(each.state is not OptunaState.FAIL and CONTINUES not in each.user_attrs for each in trials)
