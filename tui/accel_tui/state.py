"""What is known of a run: one immutable value, folded from what the run says by a pure function."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from accel_engine.events import (
    CheckpointSaved,
    CommandAnswered,
    DevicesFound,
    EpochEnded,
    Event,
    LearningRateChanged,
    ModelBuilt,
    Phase,
    PhaseChanged,
    RunEnded,
    RunStarted,
    Validated,
    Warned,
    WorkCounted,
    WorkersMet,
    XlaTried,
)
from accel_engine.run import Chunk, RunInfo, Status, Update
from accel_engine.run.steps import RATE, TIME, working_seconds
from accel_engine.run.summary import Stretch
from accel_tui.curve import Curve
from accel_tui.device_curves import DeviceCurves
from accel_tui.marks import Marks, marked
from accel_tui.meter import Meter, record
from accel_tui.pace import Pace

NOTICES = 200
"""How many warnings and answers are kept."""

Notice = Warned | CommandAnswered
Points = tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True, eq=False)
class RunState:
    """A run as far as it was followed.

    Attributes:
        info: What the run is and how it stands; ``None`` before it was read.
        started: The latest engine's first word.
        devices: TensorFlow's view of the devices.
        built: What the plan came to.
        ended: The last word; ``None`` while more may come.
        phase: What the engine is busy with, and since when.
        step: Steps taken.
        curves: Every per-step series by name.
        throughput: Steps a second, on the axis of steps.
        ended_at: When each step ended, in seconds since the Unix epoch; of a bucket only the mean counts.
        rates: The first step of each learning rate, and the rate.
        marks: Where on the axis of steps something happened that can be marked there.
        readings: What was recorded of devices, on the axis of steps, where somebody looks at it.
        details: A part of the series more finely than in ``curves``, where somebody looks at it closely, by name;
            the throughput under :data:`~accel_engine.run.steps.RATE`.
        validation: Points of step and value by metric.
        epoch: The latest epoch that ended.
        xla: What trying XLA has shown; ``None`` while it was not tried.
        work: What a step computes and the devices could; ``None`` before that was counted.
        learning_rate: That of the next step, or ``None`` where the optimizer's own is in use.
        checkpoint: The last one.
        validated: The last validation.
        notices: The latest warnings and answers, newest last.
        noticed: How many there were in all.
        meters: The devices' readings by device id.
        pace: The speed of training of late.
        met: The workers that train together, once they have met; ``None`` for who trains alone.
        workers: What the others among them say, their steps apart, by name; those whose runs can be seen from here.
    """

    info: RunInfo | None = None
    started: RunStarted | None = None
    devices: DevicesFound | None = None
    built: ModelBuilt | None = None
    ended: RunEnded | None = None
    phase: PhaseChanged | None = None
    step: int = 0
    curves: Mapping[str, Curve] = field(default_factory=dict)
    throughput: Curve = field(default_factory=Curve)
    ended_at: Curve = field(default_factory=Curve)
    rates: Points = ()
    marks: Marks = field(default_factory=dict)
    readings: DeviceCurves = field(default_factory=dict)
    details: Mapping[str, Curve] = field(default_factory=dict)
    validation: Mapping[str, Points] = field(default_factory=dict)
    epoch: EpochEnded | None = None
    xla: XlaTried | None = None
    work: WorkCounted | None = None
    learning_rate: float | None = None
    checkpoint: CheckpointSaved | None = None
    validated: Validated | None = None
    notices: tuple[Notice, ...] = ()
    noticed: int = 0
    meters: Mapping[str, Meter] = field(default_factory=dict)
    pace: Pace = field(default_factory=Pace)
    met: WorkersMet | None = None
    workers: Mapping[str, "RunState"] = field(default_factory=dict)

    @property
    def live(self) -> bool:
        """Whether more is to come."""
        return self.info is not None and self.info.status.live

    @property
    def lost(self) -> bool:
        """Whether the engine died without a word."""
        return self.info is not None and self.info.status is Status.LOST

    @property
    def over(self) -> bool:
        """Whether it is known how it came to its end; a moment later than that it did."""
        return self.lost or (self.ended is not None and not self.live)

    @property
    def paused(self) -> bool:
        """Whether the engine waits to be resumed."""
        return self.live and self.phase is not None and self.phase.phase is Phase.PAUSED

    @property
    def total_steps(self) -> int | None:
        """Steps of the whole plan, once they are known."""
        return self.built.epochs * self.built.steps_per_epoch if self.built and self.built.steps_per_epoch else None

    @property
    def current_epoch(self) -> int | None:
        """The epoch that the next step belongs to, counted from 1."""
        if self.built is None:
            return None
        if self.built.steps_per_epoch is None:
            return 1  # it is known as soon as one has ended
        return min(self.step // self.built.steps_per_epoch + 1, self.built.epochs)

    @property
    def remaining(self) -> float | None:
        """Seconds of work that are left, at the pace of late; ``None`` when that cannot be said yet.

        Each epoch to come is given the time of the last validation and of the last checkpoint.
        """
        rate = self.pace.rate
        if not (self.built and self.built.steps_per_epoch and rate and self.total_steps is not None):
            return None
        epochs_left = self.built.epochs - self.step // self.built.steps_per_epoch
        between = sum(event.seconds for event in (self.validated, self.checkpoint) if event)
        return (self.total_steps - self.step) / rate + epochs_left * between

    @property
    def flops_per_second(self) -> float | None:
        """Floating-point operations a second at the pace of late; ``None`` where they were not counted."""
        rate = self.pace.rate
        return rate * self.work.flops if rate and self.work and self.work.flops is not None else None

    @property
    def mfu(self) -> float | None:
        """Their share of what the devices could do; ``None`` where that is not known."""
        reached = self.flops_per_second
        return reached / self.work.peak if reached is not None and self.work and self.work.peak else None

    @property
    def metrics(self) -> dict[str, float]:
        """The latest value of every series, and of validation's, which are prefixed with ``validation_``."""
        latest = {name: curve.last for name, curve in self.curves.items()}
        return latest | {f"validation_{name}": points[-1][1] for name, points in self.validation.items() if points}


def fold(state: RunState, update: Update) -> RunState:
    """Give the state of a run after it has said this too."""
    for event in update.events:
        state = _after_event(state, event)
    if update.stretch:
        state = _after_stretch(state, update.stretch)
    for chunks in _contiguous(update.chunks):
        state = _after_chunks(state, chunks)
    if update.samples:
        state = replace(state, meters=record(state.meters, update.samples))
    return state


def _after_event(state: RunState, event: Event) -> RunState:
    if (marks := marked(state.marks, event, state.learning_rate)) is not state.marks:
        state = replace(state, marks=marks)
    match event:
        case RunStarted():
            state = _cut(_forgotten(state, event.first_step), event.first_step)
            planned = event.plan.get("learning_rate")
            rate = state.learning_rate if event.first_step else planned
            pace = state.pace.restarted(event.time)
            return replace(
                state,
                started=event,
                ended=None,
                xla=None,
                work=None,
                phase=None,
                met=None,
                learning_rate=rate,
                pace=pace,
            )
        case PhaseChanged():
            return replace(state, phase=event)
        case WorkersMet():
            return replace(state, met=event)
        case DevicesFound():
            return replace(state, devices=event)
        case ModelBuilt():
            return replace(state, built=event)
        case EpochEnded():
            return replace(state, epoch=event)
        case Validated():
            validation = dict(state.validation)
            for name, value in event.metrics.items():
                validation[name] = (*validation.get(name, ()), (event.step, value))
            return replace(state, validated=event, validation=validation)
        case CheckpointSaved():
            return replace(state, checkpoint=event)
        case LearningRateChanged():
            earlier = tuple(point for point in state.rates if point[0] < event.step)
            return replace(
                state, learning_rate=event.learning_rate, rates=(*earlier, (event.step, event.learning_rate))
            )
        case XlaTried():
            return replace(state, xla=event)
        case WorkCounted():
            return replace(state, work=event)
        case Warned() | CommandAnswered():
            notices = (*state.notices[1 - NOTICES :], event)
            return replace(state, notices=notices, noticed=state.noticed + 1)
        case RunEnded():
            return replace(state, ended=event)
    return state


def _contiguous(chunks: Sequence[Chunk]) -> Iterator[Sequence[Chunk]]:
    """Split chunks where one does not go on from the one before it."""
    breaks = [
        index
        for index, (before, after) in enumerate(pairwise(chunks), start=1)
        if after.first_step != before.first_step + before.count
    ]
    for start, stop in pairwise([0, *breaks, len(chunks)]):
        if start < stop:
            yield chunks[start:stop]


def _after_stretch(state: RunState, stretch: Stretch) -> RunState:
    """Take all that was recorded up to a step as it was summarised."""
    curves = curves_of(stretch)
    throughput = curves.pop(RATE, Curve())
    ended_at = Curve.of(stretch.series[TIME], stretch.first_step, stretch.last_step, stretch.width)
    return replace(state, step=stretch.last_step, curves=curves, throughput=throughput, ended_at=ended_at, details={})


def curves_of(stretch: Stretch) -> dict[str, Curve]:
    """The curves of a part of a run: of its series, and of the throughput."""
    return {
        name: Curve.of(buckets, stretch.first_step, stretch.last_step, stretch.width)
        for name, buckets in stretch.series.items()
        if name != TIME
    }


def _after_chunks(state: RunState, chunks: Sequence[Chunk]) -> RunState:
    """Add chunks that follow one another; the first of them may go back to an earlier step."""
    first = chunks[0].first_step
    state = _cut(state, first)
    curves = dict(state.curves)
    for name in dict.fromkeys(name for chunk in chunks for name in chunk.series):
        curves[name] = _extended(curves.get(name, Curve()), first, _column(chunks, name))
    pace, rates = state.pace.after(chunks)
    speeds = np.repeat(np.asarray(rates, np.float32), [chunk.count for chunk in chunks])
    return replace(
        state,
        step=chunks[-1].first_step + chunks[-1].count,
        curves=curves,
        throughput=_extended(state.throughput, first, speeds),
        ended_at=_extended(state.ended_at, first, _ends(chunks)),
        pace=pace,
    )


def _column(chunks: Iterable[Chunk], name: str) -> npt.NDArray[np.float32]:
    """One series of all chunks; NaN where a chunk has none of that name."""
    return np.concatenate(
        [chunk.series[name] if name in chunk.series else np.full(chunk.count, math.nan, np.float32) for chunk in chunks]
    )


def _ends(chunks: Sequence[Chunk]) -> npt.NDArray[np.float64]:
    """When each step of these chunks ended, the steps of a chunk being evenly apart."""
    ended = np.array([chunk.ended for chunk in chunks])
    seconds = working_seconds(np.array([chunk.started for chunk in chunks]), ended)
    counts = np.array([chunk.count for chunk in chunks])
    left = np.repeat(np.cumsum(counts), counts) - np.arange(1, counts.sum() + 1)
    ends: npt.NDArray[np.float64] = np.repeat(ended, counts) - left * np.repeat(seconds / counts, counts)
    return ends


def _extended(curve: Curve, first_step: int, values: npt.NDArray[np.floating]) -> Curve:
    """Add values at a step; steps that nothing is known of become gaps."""
    if curve.count < first_step:
        curve = curve.extend(np.full(first_step - curve.count, math.nan, np.float32))
    return curve.extend(values)


def _forgotten(state: RunState, step: int) -> RunState:
    """Forget what was found out after a step, because training goes on from there once more."""
    if state.validated and state.validated.step > step:
        kept = {name: tuple(point for point in points if point[0] <= step) for name, points in state.validation.items()}
        state = replace(state, validation=kept, validated=None)
    if state.epoch and state.epoch.step > step:
        state = replace(state, epoch=None)
    return state


def _cut(state: RunState, step: int) -> RunState:
    """Forget the steps from ``step`` on, where there are any."""
    if state.step <= step:
        return state
    curves = {name: curve.truncate(step) for name, curve in state.curves.items()}
    return replace(
        state,
        step=step,
        curves=curves,
        throughput=state.throughput.truncate(step),
        ended_at=state.ended_at.truncate(step),
        readings={},
        details={},
    )
