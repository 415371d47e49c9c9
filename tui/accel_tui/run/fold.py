"""What a run says, folded into what is known of it: a pure function from a state and news to the next state."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from itertools import pairwise
from types import SimpleNamespace

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
    PhaseChanged,
    RunEnded,
    RunStarted,
    Validated,
    Warned,
    WorkCounted,
    WorkersMet,
    XlaTried,
)
from accel_engine.run import Chunk, Update
from accel_engine.run.steps import RATE, TIME, working_seconds
from accel_engine.run.summary import Stretch
from accel_tui.run.curve import Curve
from accel_tui.run.marks import marked
from accel_tui.run.meter import record
from accel_tui.run.state import RunState

NOTICES = 200
"""How many warnings and answers are kept."""


def fold(state: RunState, update: Update) -> RunState:
    """Give the state of a run after it has said this too."""
    state = _after_events(state, update.events)
    if update.stretch:
        state = _after_stretch(state, update.stretch)
    for chunks in _contiguous(update.chunks):
        state = _after_chunks(state, chunks)
    if update.samples:
        state = replace(state, meters=record(state.meters, update.samples))
    return state


def _after_events(state: RunState, events: Sequence[Event]) -> RunState:
    """Take in what was said; a state is made once for all of it, since a long run has said thousands of things."""
    draft = _draft(state)
    for event in events:
        draft.marks = marked(draft.marks, event, draft.learning_rate)
        if isinstance(event, RunStarted):
            draft = _draft(_begun(RunState(**vars(draft)), event))
        else:
            _note(draft, event)
    return RunState(**vars(draft)) if events else state


def _draft(state: RunState) -> SimpleNamespace:
    """A state that can be changed, attribute by attribute."""
    return SimpleNamespace(**{one.name: getattr(state, one.name) for one in fields(RunState)})


def _begun(state: RunState, event: RunStarted) -> RunState:
    """The state when an engine takes the run up at a step."""
    state = _cut(_forgotten(state, event.first_step), event.first_step)
    return replace(
        state,
        started=event,
        ended=None,
        xla=None,
        work=None,
        phase=None,
        met=None,
        learning_rate=state.learning_rate if event.first_step else event.plan.get("learning_rate"),
        pace=state.pace.restarted(event.time),
    )


def _note(draft: SimpleNamespace, event: Event) -> None:
    match event:
        case PhaseChanged():
            draft.phase = event
        case WorkersMet():
            draft.met = event
        case DevicesFound():
            draft.devices = event
        case ModelBuilt():
            draft.built = event
        case EpochEnded():
            draft.epoch = event
        case Validated():
            known = draft.validation
            found = {name: (*known.get(name, ()), (event.step, value)) for name, value in event.metrics.items()}
            draft.validated, draft.validation = event, known | found
        case CheckpointSaved():
            draft.checkpoint = event
        case LearningRateChanged():
            earlier = tuple(point for point in draft.rates if point[0] < event.step)
            draft.learning_rate, draft.rates = event.learning_rate, (*earlier, (event.step, event.learning_rate))
        case XlaTried():
            draft.xla = event
        case WorkCounted():
            draft.work = event
        case Warned() | CommandAnswered():
            draft.notices, draft.noticed = (*draft.notices[1 - NOTICES :], event), draft.noticed + 1
        case RunEnded():
            draft.ended = event


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
