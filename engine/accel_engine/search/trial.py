"""A trial of a search, as its study stores it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from accel_engine.json_values import Count, JsonValue, Number, Text


class PendingAction(StrEnum):
    """A change of a trial that its run has not made yet."""

    PRUNE = "prune"
    STOP = "stop"
    """By a user: what it has reached counts."""
    PAUSE = "pause"
    """It stops with the search, and is continued with it."""
    CONTINUE = "continue"
    """It has ended, and is to be continued."""


class TrialState(StrEnum):
    """The state of a trial.

    A pruned trial is continued from its checkpoint when it turns out to be among the best; then it runs again.
    """

    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"
    PRUNED = "pruned"
    STOPPED = "stopped"
    FAILED = "failed"
    OUT_OF_MEMORY = "out of memory"
    LOST = "lost"
    """The machine that trains it no longer responds; it does not count towards the number of trials."""

    @property
    def live(self) -> bool:
        """Whether it trains, or will."""
        return self in (TrialState.WAITING, TrialState.RUNNING)

    @property
    def failed(self) -> bool:
        """Whether it has failed, also for lack of memory."""
        return self in (TrialState.FAILED, TrialState.OUT_OF_MEMORY)


@dataclass(frozen=True, slots=True)
class TrialReport:
    """The monitor's value of a trial at a validation, or at the end of an epoch if it is a metric of training."""

    trial: int
    """The trial's number."""
    epoch: int
    """Epochs completed; 0 within the first one."""
    step: int
    """Steps taken so far."""
    time: float
    """Seconds since the Unix epoch."""
    value: float


@dataclass(frozen=True, slots=True)
class Trial:
    """A proposal, and what became of it."""

    number: Count
    """Its number, from 0, which the first of Optuna's trials that stand for it has, too."""
    run: Text
    """Id of its run; empty before it has one, and for a trial of another machine."""
    state: TrialState
    values: Mapping[str, JsonValue]
    """The values of the parameters."""
    objectives: Mapping[str, Number] = field(default_factory=dict)
    """The objectives by name, of a trial that has finished, or was pruned or stopped."""
    reason: Text = ""
    """Why it failed, was pruned or was stopped, or is held in the queue; empty for others."""
    started: Number = 0.0
    """When its run was created, in seconds since the Unix epoch."""
    ended: Number | None = None
    """When it ended; ``None`` for a live one."""
    machine: Text = ""
    """Name of the machine that trains it; empty for this one."""
    duplicate_of: Count | None = None
    """Number of an earlier trial with the same values, whose result it shares; ``None`` for its own."""
    member: Text = ""
    """The search's process, of this machine or another one, that trains it; see
    :attr:`accel_engine.search.study_database.StudyDatabase.member`."""
    lost: Count = 0
    """How often its engine was lost."""
    pending: PendingAction | None = None
    """What is done with it; ``None`` while nothing is. A stopped trial that is paused still is."""
    pruned_by_user: bool = False
    """Whether a user has pruned it, so that it is not continued by itself."""
    epochs: Count | None = None
    """Epochs to train, if a user has prolonged it."""
    continued: Number = 0.0
    """When it was last continued, in seconds since the Unix epoch; 0 if it never was."""
    idle: Number = 0.0
    """Seconds from its ends to its continuations."""

    def seconds(self, now: float) -> float | None:
        """Seconds from its start to its end, or to now, without those for which it was idle; ``None`` if unknown."""
        return (now if self.ended is None else self.ended) - self.started - self.idle if self.started else None
