"""Marks on the step axis: ends of epochs, validations, checkpoints and others."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isclose

from accel_engine import events
from accel_engine.events import Event

_RELATIVE_TOLERANCE = 1e-6  # relative; float32 precision, and rounding where replicas' rates are averaged

MAX_MARKS = 1024
"""Maximum number of marks of a kind: more than a terminal is wide."""


class MarkKind(StrEnum):
    """Kinds of marks."""

    EPOCH = "epoch"
    VALIDATION = "validation"
    CHECKPOINT = "checkpoint"
    LEARNING_RATE_DOWN = "lower learning rate"
    LEARNING_RATE_UP = "higher learning rate"
    XLA = "XLA"
    MICRO_BATCHES = "micro-batches"
    PAUSED = "pause"
    RESUMED = "continued"
    PART = "part"
    RECOVERED = "recovered"
    ADVICE = "advice"


@dataclass(frozen=True, slots=True)
class Track:
    """The steps of one kind of mark, in bounded memory: if need be only every second, fourth, ... one."""

    steps: tuple[int, ...] = ()
    """Steps taken, rising; the n-th is of event number ``n * stride``, counted from 1."""
    stride: int = 1
    """Every ``stride``-th event is kept."""
    count: int = 0
    """Number of events."""

    def extended(self, steps: Sequence[int]) -> "Track":
        """With more events, at rising steps not before the last one."""
        count, stride = self.count + len(steps), self.stride
        kept = (*self.steps, *steps[stride - 1 - self.count % stride :: stride])
        while len(kept) > MAX_MARKS:
            kept, stride = kept[1::2], 2 * stride
        return Track(kept, stride, count)

    def cut(self, step: int) -> "Track":
        """Without the events after a step."""
        steps = self.steps[: bisect_right(self.steps, step)]
        return self if steps == self.steps else Track(steps, self.stride, len(steps) * self.stride)


Marks = Mapping[MarkKind, Track]
"""Marks by kind; kinds without events may be missing."""


def resumed(marks: Marks, step: int) -> Marks:
    """The marks that remain when an engine continues from a step."""
    kept = {kind: track.cut(step) for kind, track in marks.items()}
    return extended_marks(kept, {MarkKind.RESUMED: [step]}) if step else kept


def extended_marks(marks: Marks, steps: Mapping[MarkKind, Sequence[int]]) -> Marks:
    """The marks with more events, at steps not before the last ones."""
    return {**marks, **{kind: marks.get(kind, Track()).extended(more) for kind, more in steps.items()}}


def with_advice(marks: Marks, steps: Iterable[int]) -> Marks:
    """The marks of a run, with the steps where the evidence of its advice begins."""
    where = sorted(set(steps))
    return {**marks, MarkKind.ADVICE: Track().extended(where)} if where else marks


def mark_of(event: Event, learning_rate: float | None) -> tuple[MarkKind, int] | None:
    """Kind and step of the mark of an event; ``None`` if it has none.

    Args:
        event: The event.
        learning_rate: The learning rate before it, if known.
    """
    match event:
        case events.EpochEnded(step=step):
            return MarkKind.EPOCH, step
        case events.Validated(step=step):
            return MarkKind.VALIDATION, step
        case events.CheckpointSaved(step=step):
            return MarkKind.CHECKPOINT, step
        case events.LearningRateChanged(step=step, learning_rate=new, schedule="") if learning_rate and not isclose(
            new, learning_rate, rel_tol=_RELATIVE_TOLERANCE
        ):
            return (MarkKind.LEARNING_RATE_DOWN if new < learning_rate else MarkKind.LEARNING_RATE_UP), step
        case events.XlaTried(step=step, remembered=False):
            return MarkKind.XLA, step
        case events.MicroBatchesTried(step=step, remembered=False):
            return MarkKind.MICRO_BATCHES, step
        case events.CommandAnswered(command="pause", obeyed=True, step=step):
            return MarkKind.PAUSED, step
        case events.Recovered(step=step):
            return MarkKind.RECOVERED, step
        case events.PartStarted(step=step) if step:
            return MarkKind.PART, step
    return None
