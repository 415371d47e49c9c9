"""A trial of another machine, as Optuna's storage has it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from optuna.trial import FrozenTrial
from optuna.trial import TrialState as OptunaState

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
