"""A trial of a search, as its study stores it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from accel_engine.json_values import Count, JsonValue, Number, Text


class PendingAction(StrEnum):
    """What is done with a trial, until its run has followed."""

    PRUNE = "prune"
    STOP = "stop"
    """By a user: what it has reached counts."""
    PAUSE = "pause"
    """It stops with the search, and is continued with it."""
    CONTINUE = "continue"
    """It has ended."""


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
    """The machine that trains it no longer responds; it takes no part of the number of trials."""

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
    """The monitor's value of a trial at a validation, or at the end of an epoch if it is a metric of training.

    Attributes:
        trial: The trial's number.
        epoch: Epochs completed; 0 within the first one.
        step: Steps taken so far.
        time: Seconds since the Unix epoch.
        value: The value.
    """

    trial: int
    epoch: int
    step: int
    time: float
    value: float


@dataclass(frozen=True, slots=True)
class Trial:
    """A proposal, and what became of it.

    Attributes:
        number: Its number, from 0, which the first of Optuna's trials that stand for it has, too.
        run: Id of its run; empty before it has one, and for a trial of another machine.
        state: Its state.
        values: The values of the parameters.
        objectives: The objectives by name, of a trial that has finished or was pruned.
        reason: Why it failed, was pruned or was stopped, or is held in the queue; empty for others.
        started: When its run was created, in seconds since the Unix epoch.
        ended: When it ended; ``None`` for a live one.
        machine: Name of the machine that trains it; empty for this one.
        duplicate_of: Number of an earlier trial with the same values, whose result it shares; ``None`` for its own.
        member: The search's process, of this machine or another one, that trains it; see
            :attr:`accel_engine.search.study_database.StudyDatabase.member`.
        lost: How often its engine was lost.
        pending: What is done with it; ``None`` while nothing is. A stopped trial that is paused still is.
        pruned_by_user: Whether a user has pruned it, so that it is not continued by itself.
        epochs: Epochs to train, if a user has prolonged it.
        continued: When it was last continued, in seconds since the Unix epoch; 0 if it never was.
        idle: Seconds from its ends to its continuations.
    """

    number: Count
    run: Text
    state: TrialState
    values: Mapping[str, JsonValue]
    objectives: Mapping[str, Number] = field(default_factory=dict)
    reason: Text = ""
    started: Number = 0.0
    ended: Number | None = None
    machine: Text = ""
    duplicate_of: Count | None = None
    member: Text = ""
    lost: Count = 0
    pending: PendingAction | None = None
    pruned_by_user: bool = False
    epochs: Count | None = None
    continued: Number = 0.0
    idle: Number = 0.0

    def seconds(self, now: float) -> float | None:
        """Seconds from its start to its end, or to now, without those for which it was idle; ``None`` if unknown."""
        return (now if self.ended is None else self.ended) - self.started - self.idle if self.started else None
