"""The interface of a search to the runs of its trials; tests and benchmarks put other runs in their place."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from accel_engine.plan import Plan
from accel_engine.run.engine.status import Status
from accel_engine.search.trial import PendingAction, Trial, TrialState


@dataclass(frozen=True, slots=True)
class RunMetrics:
    """The metrics of a run at a step at which there was a validation, or an epoch ended."""

    epoch: int
    """Epochs completed."""
    step: int
    """Steps taken."""
    time: float
    """Seconds since the Unix epoch."""
    metrics: Mapping[str, float]
    """Metrics by name; names of validation begin with ``validation_``."""


@dataclass(frozen=True, slots=True)
class Observation:
    """How a run is now."""

    status: Status
    measurements: Sequence[RunMetrics] = field(default=())
    """Measurements in order of the steps, without discarded steps of a run that was continued, and those after a change
    by the user."""
    reason: str = ""
    """Why it ended."""
    out_of_memory: bool = False
    """Whether it ended because memory ran out."""
    changed: str = ""
    """The change after which it no longer trains with the values of its trial, in words; empty if there was none."""


class TrialRuns(Protocol):
    """Creates, starts and watches runs; all methods may raise an :class:`accel_engine.errors.AccelError`."""

    def slots(self) -> int:
        """How many runs can train at the same time on the devices of this machine."""

    def ahead(self) -> int:
        """How many trials may wait besides those that train, if their values do not depend on results."""

    def create(self, plan: Plan, study: str, trial: int | None) -> str:
        """Create a run that waits; returns its id."""

    def find(self, study: str) -> Mapping[str, int | None]:
        """The trials' numbers by the ids of a search's runs, oldest first; ``None`` for runs that confirm the best."""

    def exists(self, run: str) -> bool:
        """Whether a run was not deleted."""

    def start(self, run: str) -> str:
        """Start a run that waits when there is a device for it; returns why a user holds it, empty if none does.

        Raises:
            DataError: The run cannot be started.
        """

    def reopen(self, run: str, changes: Mapping[str, Any]) -> None:
        """Prepare an ended run to be continued from its last checkpoint, from its beginning if it has none."""

    def observe(self, run: str) -> Observation:
        """Look at a run."""

    def stop(self, run: str, reason: str) -> None:
        """Ask a run to stop with a checkpoint; nothing happens if it has ended."""

    def figures(self, run: str, wanted: Collection[str]) -> Mapping[str, float]:
        """Figures of an ended run by name, see :mod:`accel_engine.search.definition`; unknown ones are missing."""


def state_after(trial: Trial, observation: Observation) -> TrialState:
    """The state of a trial whose run has ended."""
    if observation.out_of_memory:
        return TrialState.OUT_OF_MEMORY
    if observation.status is Status.FINISHED:
        return TrialState.STOPPED if observation.changed else TrialState.FINISHED
    if trial.pending is PendingAction.PRUNE:
        return TrialState.PRUNED
    return TrialState.STOPPED if observation.status is Status.STOPPED or trial.pending else TrialState.FAILED


def reason_after(trial: Trial, observation: Observation, state: TrialState) -> str:
    """Why a trial has ended before its last epoch, or failed; empty if it has done neither."""
    if state is TrialState.FINISHED:
        return ""
    if observation.changed and state is TrialState.STOPPED:
        return observation.changed
    return trial.reason if trial.pending and state in (TrialState.PRUNED, TrialState.STOPPED) else observation.reason
