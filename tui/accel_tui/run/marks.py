"""Marks on the step axis: ends of epochs, validations, checkpoints and others."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isclose

from accel_engine.events import (
    CheckpointSaved,
    CommandAnswered,
    EpochEnded,
    Event,
    LearningRateChanged,
    MicroBatchesTried,
    Validated,
    XlaTried,
)

_SAME = 1e-6  # relative; float32 precision, and rounding where replicas' rates are averaged

MOST = 1024
"""Maximum number of marks of a kind: more than a terminal is wide."""


class Kind(StrEnum):
    """Kinds of marks."""

    EPOCH = "epoch"
    VALIDATION = "validation"
    CHECKPOINT = "checkpoint"
    RATE_DOWN = "lower learning rate"
    RATE_UP = "higher learning rate"
    XLA = "XLA"
    MICRO_BATCHES = "micro-batches"
    PAUSED = "pause"
    RESUMED = "continued"


@dataclass(frozen=True, slots=True)
class Track:
    """The steps of one kind of mark, in bounded memory: if need be only every second, fourth, ... one.

    Attributes:
        steps: Steps taken, rising; the n-th is of event number ``n * every``, counted from 1.
        every: One event in so many is kept.
        count: Number of events.
    """

    steps: tuple[int, ...] = ()
    every: int = 1
    count: int = 0

    def extended(self, steps: Sequence[int]) -> "Track":
        """With more events, at rising steps not before the last one."""
        count, every = self.count + len(steps), self.every
        kept = (*self.steps, *steps[every - 1 - self.count % every :: every])
        while len(kept) > MOST:
            kept, every = kept[1::2], 2 * every
        return Track(kept, every, count)

    def cut(self, step: int) -> "Track":
        """Without the events after a step."""
        steps = self.steps[: bisect_right(self.steps, step)]
        return self if steps == self.steps else Track(steps, self.every, len(steps) * self.every)


Marks = Mapping[Kind, Track]
"""Marks by kind; kinds without events may be missing."""


def resumed(marks: Marks, step: int) -> Marks:
    """The marks that remain when an engine continues from a step."""
    kept = {kind: track.cut(step) for kind, track in marks.items()}
    return extended(kept, {Kind.RESUMED: [step]}) if step else kept


def extended(marks: Marks, steps: Mapping[Kind, Sequence[int]]) -> Marks:
    """The marks with more events, at steps not before the last ones."""
    return {**marks, **{kind: marks.get(kind, Track()).extended(more) for kind, more in steps.items()}}


def mark_of(event: Event, rate: float | None) -> tuple[Kind, int] | None:
    """Kind and step of the mark of an event; ``None`` if it has none.

    Args:
        event: The event.
        rate: The learning rate before it, if known.
    """
    match event:
        case EpochEnded(step=step):
            return Kind.EPOCH, step
        case Validated(step=step):
            return Kind.VALIDATION, step
        case CheckpointSaved(step=step):
            return Kind.CHECKPOINT, step
        case LearningRateChanged(step=step, learning_rate=new, schedule="") if rate and not isclose(
            new, rate, rel_tol=_SAME
        ):
            return (Kind.RATE_DOWN if new < rate else Kind.RATE_UP), step
        case XlaTried(step=step, remembered=False):
            return Kind.XLA, step
        case MicroBatchesTried(step=step, remembered=False):
            return Kind.MICRO_BATCHES, step
        case CommandAnswered(command="pause", obeyed=True, step=step):
            return Kind.PAUSED, step
    return None
