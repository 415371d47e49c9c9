"""What happened at single steps of a run: where epochs ended, validations were, checkpoints were written."""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from accel_engine.events import (
    CheckpointSaved,
    CommandAnswered,
    EpochEnded,
    Event,
    LearningRateChanged,
    RunStarted,
    Validated,
    XlaTried,
)

MOST = 1024
"""How many places of a kind are kept: more than a terminal is wide."""


class Kind(StrEnum):
    """What happened."""

    EPOCH = "epoch"
    VALIDATION = "validation"
    CHECKPOINT = "checkpoint"
    RATE_DOWN = "lower rate"
    RATE_UP = "higher rate"
    XLA = "XLA"
    PAUSED = "pause"
    RESUMED = "resumed"


@dataclass(frozen=True, slots=True)
class Track:
    """The steps at which one kind of thing happened, in bounded memory: if need be only every second, fourth, ... one.

    Attributes:
        steps: Steps that had been taken, rising; the n-th is that of event number ``n * every``, counted from 1.
        every: Each so many events one is kept.
        count: How many events there were.
    """

    steps: tuple[int, ...] = ()
    every: int = 1
    count: int = 0

    def added(self, step: int) -> "Track":
        """With one more event, at a step that is not before the last one."""
        count = self.count + 1
        if count % self.every:
            return replace(self, count=count)
        steps = (*self.steps, step)
        return Track(steps[1::2], 2 * self.every, count) if len(steps) > MOST else Track(steps, self.every, count)

    def cut(self, step: int) -> "Track":
        """Without the events after a step."""
        steps = self.steps[: bisect_right(self.steps, step)]
        return self if steps == self.steps else Track(steps, self.every, len(steps) * self.every)


Marks = Mapping[Kind, Track]
"""What happened, by kind; kinds that did not happen may be missing."""


def marked(marks: Marks, event: Event, rate: float | None) -> Marks:
    """Give the marks after this event too.

    Args:
        marks: Those until now.
        event: What happened.
        rate: The learning rate before it, where it is known.
    """
    match event:
        case RunStarted(first_step=step):
            kept = {kind: track.cut(step) for kind, track in marks.items()}
            return _added(kept, Kind.RESUMED, step) if step else kept
        case EpochEnded(step=step):
            return _added(marks, Kind.EPOCH, step)
        case Validated(step=step):
            return _added(marks, Kind.VALIDATION, step)
        case CheckpointSaved(step=step):
            return _added(marks, Kind.CHECKPOINT, step)
        case LearningRateChanged(step=step, learning_rate=new) if rate is not None and new != rate:
            return _added(marks, Kind.RATE_DOWN if new < rate else Kind.RATE_UP, step)
        case XlaTried(step=step, remembered=False):
            return _added(marks, Kind.XLA, step)
        case CommandAnswered(command="pause", obeyed=True, step=step):
            return _added(marks, Kind.PAUSED, step)
    return marks


def _added(marks: Marks, kind: Kind, step: int) -> Marks:
    return {**marks, kind: marks.get(kind, Track()).added(step)}
