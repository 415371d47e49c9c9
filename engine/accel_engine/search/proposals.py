"""The proposals of a search: Optuna's study behind a few plain calls, in a storage that machines may share."""

import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.distributions import check_distribution_compatibility as check_compatible
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, create_trial
from optuna.trial import Trial as OptunaTrial
from optuna.trial import TrialState as OptunaState

from accel_engine.errors import RunError, UsageError
from accel_engine.search.definition import Objective, StudyDefinition
from accel_engine.search.distributions import as_categorical, distribution, field_values
from accel_engine.search.samplers import pruner_name, pruner_of, sampler_of
from accel_engine.search.storage import journal_path, open_storage, reaching

DEFINITION, CONFIRMS = "accel_tui_definition", "accel_tui_confirms"
"""Attributes of Optuna's study: the search, and, by the number of the best trial, the member that confirms it."""

MEMBER, MACHINE, CONTINUES, REASON, RUN = ("member", "machine", "continues", "reason", "run")
"""Attributes of Optuna's trials: who trains them where, which trial one continues, why it has no result, its run."""

_VERSION = re.compile(r"#\d+$")
"""Ends the name of a parameter whose choices have changed, which Optuna does not allow."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposal of the sampler.

    Attributes:
        number: Its number in Optuna's storage.
        values: Values of fields by name.
    """

    number: int
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SharedTrial:
    """A trial of another machine.

    Attributes:
        number: Its number.
        proposal: Its number in Optuna's storage, other than its own once it was continued.
        machine: Name of the machine.
        values: Values of fields by name.
        reports: The monitor's values by number of the report, from 1.
        state: Optuna's state.
        results: The objectives' values, of one that has finished.
        reason: Why it has no result.
        started: In seconds since the Unix epoch.
        ended: In seconds since the Unix epoch; ``None`` for a live one.
    """

    number: int
    proposal: int
    machine: str
    values: Mapping[str, Any]
    reports: Mapping[int, float]
    state: OptunaState
    results: Sequence[float]
    reason: str
    started: float
    ended: float | None


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
        self._is_shared = is_shared
        self.definition = definition
        with reaching(storage):
            self._storage = open_storage(storage, is_own=not is_shared)
            self._study = self._open()
        self._trials: dict[int, OptunaTrial] = {}

    def _open(self) -> Study:
        directions = [_direction(each) for each in self.definition.objectives]
        study = optuna.create_study(
            storage=self._storage,
            study_name=self.definition.name,
            directions=directions,
            sampler=sampler_of(self.definition, 0),
            pruner=pruner_of(self.definition),
            load_if_exists=True,
        )
        if DEFINITION not in study.user_attrs:
            study.set_user_attr(DEFINITION, self.definition.to_json())
        return study

    def claim_confirmation(self, trial: int) -> bool:
        """Claim to confirm a trial unless another member has; returns whether this member confirms it.

        Of members that claim it at the same moment the last one confirms it: ask again after a moment.
        """
        name = f"{CONFIRMS}_{trial}"
        with reaching(self._address):
            if name not in self._study.user_attrs:
                self._study.set_user_attr(name, self._member)
            return bool(self._study.user_attrs[name] == self._member)

    @property
    def uses_rungs(self) -> bool:
        """Whether a pruned trial may be continued: where the pruner compares trials at rungs."""
        return pruner_name(self.definition) in ("hyperband", "asha")

    def shared_definition(self) -> StudyDefinition:
        """The search as the storage has it; another machine may have changed a range or the number of trials."""
        with reaching(self._address):
            return StudyDefinition.from_json(self._study.user_attrs[DEFINITION])

    def set_definition(self, definition: StudyDefinition, *, share: bool = True) -> None:
        """Propose by another definition from now on."""
        self.definition = definition
        with reaching(self._address):
            self._study.pruner = pruner_of(definition)
            if share:
                self._study.set_user_attr(DEFINITION, definition.to_json())

    def propose(self, values: Mapping[str, Any] | None = None) -> Proposal:
        """Make a proposal.

        Args:
            values: The values to propose; by default the sampler's.
        """
        with reaching(self._address):
            before = self._study.get_trials(deepcopy=False)
            names = self._names(before)
            if values is not None:
                fixed = {names[each]: as_categorical(value) for each, value in values.items()}
                self._study.enqueue_trial(fixed, user_attrs={MEMBER: self._member})
            self._study.sampler = sampler_of(self.definition, _count_proposals(before))
            trial = self._study.ask()
            for name, value in {MEMBER: self._member, MACHINE: socket.gethostname()}.items():
                trial.set_user_attr(name, value)
            for parameter in self.definition.parameters:
                _suggest(trial, names[parameter.name], distribution(parameter))
            self._trials[trial.number] = trial
            return Proposal(trial.number, field_values(self.definition.parameters, _plain(trial.params)))

    def unfinished(self) -> Iterator[Proposal]:
        """This member's proposals that have no result; those that a killed process left incomplete are dropped."""
        with reaching(self._address):
            for each in self._study.get_trials(deepcopy=False, states=(OptunaState.RUNNING, OptunaState.WAITING)):
                if each.user_attrs.get(MEMBER, "" if self._is_shared else self._member) != self._member:
                    continue
                values = field_values(self.definition.parameters, _plain(each.params))
                if each.user_attrs.get(CONTINUES) is None and len(values) == len(self.definition.parameters):
                    yield Proposal(each.number, values)
                elif each.user_attrs.get(CONTINUES) is None and each.state is OptunaState.RUNNING:
                    self._study.tell(each.number, state=OptunaState.FAIL)

    def note_run(self, proposal: int, run: str) -> None:
        """Note the run of a proposal, for those who look at the storage."""
        with reaching(self._address):
            self._trial(proposal).set_user_attr(RUN, run)

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
                self._trial(proposal).report(value, number)

    def should_prune(self, proposal: int, *, again: bool = False) -> bool:
        """Whether the pruner ends a trial, by its last report.

        Args:
            proposal: Number of the proposal.
            again: Whether a killed process may have asked already, and not have noted the answer.
        """
        if len(self.definition.objectives) > 1:
            return False
        with reaching(self._address):
            if again and (rung := _last_rung(self._frozen(proposal))):
                return self._would_prune(proposal, rung)
            return bool(self._trial(proposal).should_prune())

    def _would_prune(self, proposal: int, rung: str) -> bool:
        """The answer again: Optuna notes that a trial has completed a rung, and answers once for each.

        It is asked of a copy in memory, in which the trial has not completed its last rung.
        """
        copy = optuna.create_study(
            study_name=self.definition.name,
            directions=self._study.directions,
            pruner=pruner_of(self.definition),
            sampler=self._study.sampler,
        )
        for each in self._study.get_trials(deepcopy=True):
            if each.number == proposal:
                each.system_attrs.pop(rung)
            copy.add_trial(each)
        return bool(OptunaTrial(copy, proposal).should_prune())

    def finish(self, proposal: int, results: Sequence[float] | None, reason: str = "") -> None:
        """Take the result of a trial; nothing happens if it has one.

        Args:
            proposal: Number of the proposal.
            results: The objectives' values; ``None`` for a pruned trial, and for one that is infeasible. Optuna's
                samplers take one without a report as worse than any other.
            reason: Why it has none.
        """
        with reaching(self._address):
            if self._frozen(proposal).state.is_finished():
                return
            if reason:
                self._trial(proposal).set_user_attr(REASON, reason)
            state = OptunaState.PRUNED if results is None else OptunaState.COMPLETE
            try:
                self._study.tell(proposal, None if results is None else list(results), state)
            except RuntimeError as error:  # after the last point of a grid; the result is stored by then
                if "Study.stop" not in str(error):
                    raise
            self._trials.pop(proposal, None)

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
            self._study.add_trial(
                create_trial(
                    state=OptunaState.RUNNING,
                    params=before.params,
                    distributions=before.distributions,
                    intermediate_values=before.intermediate_values,
                    user_attrs={MEMBER: self._member, MACHINE: socket.gethostname(), CONTINUES: number},
                    system_attrs=_rungs(before) if pruner_name(self.definition) == "asha" else {},
                )
            )
            found = (each for each in reversed(self._study.get_trials(deepcopy=False)))
            return next(
                each.number
                for each in found
                if each.user_attrs.get(CONTINUES) == number and each.user_attrs.get(MEMBER) == self._member
            )

    def others(self) -> Iterator[SharedTrial]:
        """The trials of other machines, each as of its last continuation."""
        if not self._is_shared:
            return
        latest: dict[int, FrozenTrial] = {}
        with reaching(self._address):
            for each in self._study.get_trials(deepcopy=False):
                if each.user_attrs.get(MEMBER, self._member) != self._member:
                    latest[each.user_attrs.get(CONTINUES, each.number)] = each
        for number, each in latest.items():
            yield SharedTrial(
                number=number,
                proposal=each.number,
                machine=str(each.user_attrs.get(MACHINE, "")),
                values=field_values(self.definition.parameters, _plain(each.params)),
                reports=each.intermediate_values,
                state=each.state,
                results=() if each.state is not OptunaState.COMPLETE else tuple(each.values or ()),
                reason=str(each.user_attrs.get(REASON, "")),
                started=each.datetime_start.timestamp() if each.datetime_start else 0.0,
                ended=each.datetime_complete.timestamp() if each.datetime_complete else None,
            )

    def _trial(self, number: int) -> OptunaTrial:
        if number not in self._trials:
            study = self._storage.get_study_id_from_name(self.definition.name)
            trial = self._storage.get_trial_id_from_study_id_trial_number(study, number)
            self._trials[number] = OptunaTrial(self._study, trial)
        return self._trials[number]

    def _frozen(self, number: int) -> FrozenTrial:
        study = self._storage.get_study_id_from_name(self.definition.name)
        return self._storage.get_trial(self._storage.get_trial_id_from_study_id_trial_number(study, number))

    def _names(self, trials: Sequence[FrozenTrial]) -> dict[str, str]:
        """The name of each parameter in Optuna's storage: another one once its choices have changed."""
        used = {name: known for trial in trials for name, known in trial.distributions.items()}
        return {each.name: _free_name(each.name, distribution(each), used) for each in self.definition.parameters}


def _direction(objective: Objective) -> StudyDirection:
    return StudyDirection.MAXIMIZE if objective.maximize else StudyDirection.MINIMIZE


def names_on(storage: str) -> list[str]:
    """The names of the studies on a storage; none if a journal does not exist yet.

    Raises:
        RunError: The storage cannot be reached or read.
    """
    path = journal_path(storage)
    if path is not None and not path.is_file():
        return []
    with reaching(storage):
        return optuna.get_all_study_names(open_storage(storage))


def load_definition(storage: str, name: str = "") -> StudyDefinition:
    """The definition of a search that another machine has begun.

    Args:
        storage: Path of a journal file, or URL of a database.
        name: Name of the search; empty for the only one.

    Raises:
        RunError: The storage cannot be reached or read.
        UsageError: It has no search, several, or none of this name.
    """
    path = journal_path(storage)
    if path is not None and not path.is_file():
        raise UsageError(f"there is no storage {storage}: begin a search with --storage {storage} first")
    with reaching(storage):
        opened = open_storage(storage)
        found = {study.study_name: study.user_attrs for study in optuna.get_all_study_summaries(opened)}
    ours = [each for each, attributes in found.items() if DEFINITION in attributes]
    if not ours:
        raise UsageError(f"the storage {storage} has no search of accel-tui")
    if not name and len(ours) > 1:
        raise UsageError(f"the storage {storage} has several searches: give --name {' or --name '.join(ours)}")
    if name and name not in ours:
        raise UsageError(f"the storage {storage} has no search {name!r}; it has {', '.join(ours)}")
    try:
        return StudyDefinition.from_json(found[name or ours[0]][DEFINITION])
    except ValueError as error:
        raise RunError(f"the search on the storage {storage} cannot be read: {error}") from error


def _count_proposals(trials: Sequence[FrozenTrial]) -> int:
    """How many proposals there were, without those that a killed process left and those that continue another."""
    return sum(each.state is not OptunaState.FAIL and CONTINUES not in each.user_attrs for each in trials)


def _suggest(trial: OptunaTrial, name: str, wanted: BaseDistribution) -> None:
    match wanted:
        case CategoricalDistribution(choices=choices):
            trial.suggest_categorical(name, choices)
        case IntDistribution(low=low, high=high, log=log, step=step):
            trial.suggest_int(name, low, high, log=log, step=step)
        case FloatDistribution(low=low, high=high, log=log, step=step):
            trial.suggest_float(name, low, high, log=log, step=step)


def _free_name(name: str, wanted: BaseDistribution, used: Mapping[str, BaseDistribution]) -> str:
    version, found = 1, name
    while found in used and not _is_compatible(used[found], wanted):
        version += 1
        found = f"{name}#{version}"
    return found


def _is_compatible(known: BaseDistribution, wanted: BaseDistribution) -> bool:
    try:
        check_compatible(known, wanted)
    except ValueError:
        return False
    return True


def _plain(params: Mapping[str, Any]) -> dict[str, Any]:
    return {_VERSION.sub("", name): value for name, value in params.items()}


def _rungs(trial: FrozenTrial) -> dict[str, Any]:
    """What Optuna notes of the rungs that a trial has completed."""
    return {name: value for name, value in trial.system_attrs.items() if name.startswith("completed_rung_")}


def _last_rung(trial: FrozenTrial) -> str:
    """The name of the rung that a trial has completed by its last report; empty if it has completed none by that."""
    rungs = _rungs(trial)
    last = f"completed_rung_{len(rungs) - 1}"
    step = trial.last_step
    return last if step is not None and rungs.get(last) == trial.intermediate_values[step] else ""
