"""The study of a search in Optuna's storage, as the process that runs the search and those that show it read it.

Each of Optuna's trials has our :class:`Trial`, which names its run, in its attribute ``trial``, and its reports in
attributes ``report N``. Optuna changes no trial that has a result: one that is continued has another of Optuna's
trials, with the same number in its attribute, of which the last one counts.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import optuna
from optuna.samplers import RandomSampler
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial

from accel_engine.json_values import convert
from accel_engine.search.definition import StudyDefinition
from accel_engine.search.storage import DEFINITION, Heartbeat, define_study, heartbeats, open_storage, reaching
from accel_engine.search.study_database import LIMITS, StudyDatabase
from accel_engine.search.trial import Trial, TrialReport, TrialState

TRIAL = "trial"
"""Attribute of Optuna's trials: our trial."""

REPORT = "report "
"""Begins the names of attributes of Optuna's trials that have a report; ends with its number, from 1."""


class StudyReader:
    """The trials of a search, on all machines; its methods may be called from one thread at a time.

    Args:
        directory: The search's directory.
        is_writer: Whether this process runs the search.

    Attributes:
        database: The part of this machine.
        trials: The trials by number; replaced, not changed, when some are new.
        reports: The reports of each trial, by their number from 1.

    Raises:
        RunError: There is no search, or its storage cannot be reached or read. All methods raise it, too.
    """

    definition: StudyDefinition
    """The definition of the search."""

    def __init__(self, directory: Path, *, is_writer: bool = False) -> None:
        self.database = StudyDatabase(directory)
        self.trials: dict[int, Trial] = {}
        self.reports: dict[int, dict[int, TrialReport]] = {}
        self._stored: dict[int, Trial] = {}
        self._proposals: dict[int, int] = {}
        self._read: dict[int, FrozenTrial] = {}
        try:
            part, self._address = self.database.part, self.database.address
            self.is_shared, self.member = bool(part.storage), part.member
            with self._reaching():
                self._storage = open_storage(self._address, is_alone=is_writer and not self.is_shared)
                self._study = optuna.load_study(
                    study_name=directory.name, storage=self._storage, sampler=RandomSampler()
                )
            self.refresh()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the study."""
        self.database.close()
        storage = getattr(self, "_storage", None)
        if isinstance(storage, RDBStorage):
            storage.engine.dispose()

    def refresh(self) -> set[int]:
        """Read what is new; returns the numbers of the trials that have changed."""
        with self._reaching():
            attributes = self._study.user_attrs
            self._shared = convert(attributes[DEFINITION], StudyDefinition)
            changed = set(self._take(self._study.get_trials(deepcopy=False)))
            beats = heartbeats(attributes)
        part = self.database.part
        self.definition = replace(self._shared, storage=part.storage, **part.limits)
        shown = {number: self._stored[number] for number in changed}
        shown |= self._on_other_machines(beats, part.lost_members)
        changed |= {number for number, trial in shown.items() if self.trials.get(number) != trial}
        if changed:
            self.trials = dict(sorted({**self.trials, **shown}.items()))
        return changed

    def redefine(self, **changes: Any) -> None:
        """Change fields of the definition, on all machines unless they are in :data:`LIMITS`."""
        limits = {name: value for name, value in changes.items() if name in LIMITS}
        self.database.update(limits={**self.database.part.limits, **limits})
        shared = {name: value for name, value in changes.items() if name not in LIMITS}
        with self._reaching():
            define_study(self._study, replace(self._shared, **shared))
        self.refresh()

    def _take(self, proposals: Iterable[FrozenTrial]) -> Iterator[int]:
        """Read Optuna's trials that have changed; yields the numbers of those that differ."""
        for proposal in proposals:
            if self._read.get(proposal.number) is proposal or TRIAL not in proposal.user_attrs:
                continue
            self._read[proposal.number] = proposal
            trial = convert(proposal.user_attrs[TRIAL], Trial)
            reports = _reports(trial.number, proposal.user_attrs)
            is_known = (self._stored.get(trial.number), self.reports.get(trial.number)) == (trial, reports)
            if not is_known and proposal.number >= self._proposals.get(trial.number, 0):
                self._proposals[trial.number] = proposal.number
                self._stored[trial.number], self.reports[trial.number] = trial, reports
                yield trial.number

    def _on_other_machines(self, beats: Mapping[str, Heartbeat], lost_members: Iterable[str]) -> dict[int, Trial]:
        """The trials of other members, with their machines; live ones of lost members are lost."""
        others = [trial for trial in self._stored.values() if trial.member != self.member]
        if not others:
            return {}
        machines = machine_names({member: beat.host for member, beat in beats.items()})
        lost = {member: beats[member] for member in lost_members if member in beats}
        return {each.number: _elsewhere(each, machines.get(each.member, "?"), lost.get(each.member)) for each in others}

    def _reaching(self) -> AbstractContextManager[None]:
        return reaching(self._address)


def machine_names(hosts: Mapping[str, str]) -> dict[str, str]:
    """The machines of members by member: host names, with the member's beginning where several have the same.

    Args:
        hosts: Host names by member.
    """
    shared = Counter(hosts.values())
    return {member: host if shared[host] == 1 else f"{host} ({member[:4]})" for member, host in hosts.items()}


def _elsewhere(trial: Trial, machine: str, lost: Heartbeat | None) -> Trial:
    """A trial of another machine, whose run is there.

    Args:
        trial: The trial.
        machine: Name of the machine.
        lost: The last heartbeat of its member, if that no longer responds.
    """
    trial = replace(trial, run="", machine=machine)
    if lost is None or not trial.state.live:
        return trial
    return replace(trial, state=TrialState.LOST, reason="its machine no longer responds", ended=lost.time)


def _reports(number: int, attributes: Mapping[str, Any]) -> dict[int, TrialReport]:
    """The reports of a trial, in attributes of Optuna's trial."""
    found = {int(name.removeprefix(REPORT)): each for name, each in attributes.items() if name.startswith(REPORT)}
    return {
        index: TrialReport(number, *convert(found[index], tuple[int, int, float, float])) for index in sorted(found)
    }
