"""The parameters of a search and the trials of all machines, as Optuna's storage has them."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.distributions import check_distribution_compatibility as check_compatible
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial
from optuna.trial import TrialState as OptunaState

from accel_engine.errors import UsageError
from accel_engine.search.definition import Parameter
from accel_engine.search.over import LIST

_VERSION = re.compile(r"#\d+$")
"""Ends the name of a parameter whose choices have changed, which Optuna does not allow."""


def suggest_values(trial: Trial, parameters: Iterable[Parameter], trials: Iterable[FrozenTrial]) -> None:
    """Let the sampler choose the value of each parameter.

    Args:
        trial: The trial that gets the values.
        parameters: What varies.
        trials: All trials on the storage.
    """
    used = _used(trials)
    for each in parameters:
        wanted = _distribution(each)
        _suggest(trial, _free_name(each.name, wanted, used), wanted)


def trial_with(
    parameters: Iterable[Parameter], values: Mapping[str, Any], trials: Sequence[FrozenTrial]
) -> FrozenTrial:
    """A live trial with given values; a value outside the present range keeps the range of a trial that had it.

    Args:
        parameters: What varies.
        values: The values of fields by name.
        trials: All trials on the storage.

    Raises:
        UsageError: A value is in no range that its field has, or had.
    """
    params, distributions, used = dict[str, Any](), dict[str, BaseDistribution](), _used(trials)
    for each in parameters:
        value, wanted = as_categorical(values[each.name]), _distribution(each)
        name = _free_name(each.name, wanted, used)
        if not _contains(wanted, value):
            name, wanted = _range_with(each.name, value, trials)
        params[name], distributions[name] = value, wanted
    return create_trial(state=TrialState.RUNNING, params=params, distributions=distributions)


def values_of(parameters: Iterable[Parameter], trial: FrozenTrial | Trial) -> dict[str, Any]:
    """The values of fields of a trial on the storage."""
    return field_values(parameters, {_VERSION.sub("", name): value for name, value in trial.params.items()})


def _used(trials: Iterable[FrozenTrial]) -> dict[str, BaseDistribution]:
    return {name: known for trial in trials for name, known in trial.distributions.items()}


def _suggest(trial: Trial, name: str, wanted: BaseDistribution) -> None:
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


def _contains(known: BaseDistribution, value: Any) -> bool:
    try:
        create_trial(state=TrialState.RUNNING, params={"": value}, distributions={"": known})
    except ValueError:
        return False
    return True


def _range_with(field: str, value: Any, trials: Sequence[FrozenTrial]) -> tuple[str, BaseDistribution]:
    """The name and the _distribution of a field in the newest trial that had a value.

    Raises:
        UsageError: None had it.
    """
    for trial in reversed(trials):
        for name, known in trial.distributions.items():
            if _VERSION.sub("", name) == field and trial.params[name] == value:
                return name, known
    raise UsageError(f"{field} = {value!r} is not in the range of this search")


def distributions(parameters: Iterable[Parameter]) -> dict[str, BaseDistribution]:
    """The _distribution of each parameter, by the name of its field."""
    return {parameter.name: _distribution(parameter) for parameter in parameters}


def _distribution(parameter: Parameter) -> BaseDistribution:
    """The _distribution of a parameter; choices that are lists are texts to Optuna."""
    if parameter.choices:
        return CategoricalDistribution([as_categorical(choice) for choice in parameter.choices])
    if parameter.low is None or parameter.high is None:
        raise ValueError(f"{parameter.name} has neither a range nor choices")
    if parameter.whole:
        step = 1 if parameter.step is None else int(parameter.step)
        return IntDistribution(int(parameter.low), int(parameter.high), log=parameter.log, step=step)
    return FloatDistribution(parameter.low, parameter.high, log=parameter.log, step=parameter.step)


def as_categorical(value: Any) -> Any:
    """A choice as Optuna stores it: a list is a text."""
    return LIST.join(value) if isinstance(value, list | tuple) else value


def field_values(parameters: Iterable[Parameter], params: Mapping[str, Any]) -> dict[str, Any]:
    """The values of fields, in types of JSON, that Optuna's values stand for."""
    return {each.name: _field_value(each, params[each.name]) for each in parameters if each.name in params}


def _field_value(parameter: Parameter, value: Any) -> Any:
    if parameter.choices:
        return next((choice for choice in parameter.choices if as_categorical(choice) == value), value)
    return int(value) if parameter.whole else float(value)


MEMBER, MACHINE, CONTINUES, REASON, RUN = ("member", "machine", "continues", "reason", "run")
"""Attributes of Optuna's trials: who trains them where, which trial one continues, why it has no result, its run."""

PASSED = "passed"
"""Attribute of Optuna's trials: the number of the last report after which the pruner let it train on."""

FEASIBLE = "feasible"
"""Name of Optuna's constraint that a trial has failed, also for lack of memory: more than 0 if it has."""


@dataclass(frozen=True, slots=True)
class RemoteTrial:
    """A trial of another machine.

    Attributes:
        number: Its number.
        proposal: Its number in Optuna's storage, other than its own once it was continued.
        machine: Name of the machine.
        values: Values of fields by name.
        reports: The monitor's values by number of the report, from 1.
        state: Optuna's state.
        results: The objectives' values, of one that has finished.
        has_failed: Whether it has failed, also for lack of memory.
        is_lost: Whether its machine no longer responds.
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
    has_failed: bool
    is_lost: bool
    reason: str
    started: float
    ended: float | None


def machine_names(hosts: Mapping[str, str]) -> dict[str, str]:
    """The machines of members by member: host names, with the member's beginning where several have the same.

    Args:
        hosts: Host names by member.
    """
    shared = Counter(hosts.values())
    return {member: host if shared[host] == 1 else f"{host} ({member[:4]})" for member, host in hosts.items()}


def remote_trial(
    number: int, trial: FrozenTrial, values: Mapping[str, Any], machine: str, *, is_lost: bool
) -> RemoteTrial:
    """A trial of another machine.

    Args:
        number: Its number, also where ``trial`` continues it.
        trial: The trial on the storage.
        machine: Name of the machine.
        values: Values of fields by name.
        is_lost: Whether its machine no longer responds.
    """
    return RemoteTrial(
        number=number,
        proposal=trial.number,
        machine=machine,
        values=values,
        reports=trial.intermediate_values,
        state=trial.state,
        results=() if trial.state is not OptunaState.COMPLETE else tuple(trial.values or ()),
        has_failed=FEASIBLE in trial.constraints,
        is_lost=is_lost and not trial.state.is_finished(),
        reason=str(trial.user_attrs.get(REASON, "")),
        started=trial.datetime_start.timestamp() if trial.datetime_start else 0.0,
        ended=trial.datetime_complete.timestamp() if trial.datetime_complete else None,
    )
