"""Folds a run's events and steps into its state: a pure function."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from itertools import accumulate, pairwise
from types import SimpleNamespace

import numpy as np
import numpy.typing as npt

from accel_engine import events
from accel_engine.events import Event, Phase, RunStarted
from accel_engine.run import Chunk, Update
from accel_engine.run.store.downsampled_steps import StepRange
from accel_engine.run.store.series_names import LEARNING_RATE, SeriesNames
from accel_engine.run.store.steps import THROUGHPUT, TIME
from accel_engine.text import printable_fields
from accel_tui.run_state.curve import Floats, RecordedCurve, extended_curve
from accel_tui.run_state.device_meter import record_device
from accel_tui.run_state.learning_rate_curve import latest_learning_rate
from accel_tui.run_state.marks import extended_marks as with_marks
from accel_tui.run_state.marks import mark_of, resumed
from accel_tui.run_state.parts import Part
from accel_tui.run_state.state import RunState

NOTICES = 200
"""Maximum number of warnings and answers in a state."""

_PAUSED_AFTER = {"pause": True, "resume": False, "stop": False, "stop_now": False}
"""Whether the run is paused after each command."""

_LATEST: dict[type[Event], str] = {
    events.PhaseChanged: "phase",
    events.WorkersMet: "workers_met",
    events.DevicesFound: "devices",
    events.ModelBuilt: "built",
    events.EpochEnded: "epoch",
    events.Validated: "validated",
    events.CheckpointSaved: "checkpoint",
    events.ThreadsChosen: "threads",
    events.XlaTried: "xla",
    events.MicroBatchesTried: "micro_batches",
    events.WorkCounted: "work",
    events.RunEnded: "ended",
}
"""The state's field for the latest event of a kind."""


def apply_update(state: RunState, update: Update) -> RunState:
    """Return the state after an update; all of its text is printable."""
    state = _after_events(state, printable_fields(update.events))
    if update.step_range:
        state = _after_stretch(state, update.step_range)
    for chunks in _contiguous(update.chunks):
        state = _after_chunks(state, chunks)
    if update.samples:
        state = replace(state, meters=record_device(state.meters, update.samples))
    return state


def _after_events(state: RunState, new: Sequence[Event]) -> RunState:
    """Apply events to one mutable draft, since a long run has thousands of them."""
    if not new:
        return state
    draft = _draft(state)
    for event in new:
        if isinstance(event, RunStarted):
            draft = _draft(_after_start(_build(draft), event))
        else:
            _apply(draft, event)
    return _build(draft)


def _draft(state: RunState) -> SimpleNamespace:
    """A mutable copy of a state.

    Parts and validation points become lists, and ``marked`` collects the steps of marks by kind.
    """
    draft = SimpleNamespace(**{each.name: getattr(state, each.name) for each in fields(RunState)})
    draft.validation, draft.parts, draft.marked = dict(state.validation), [*state.parts], {}
    return draft


def _build(draft: SimpleNamespace) -> RunState:
    """The state of a draft."""
    draft.validation = {name: tuple(points) for name, points in draft.validation.items()}
    draft.parts = tuple(draft.parts)
    draft.marks = with_marks(draft.marks, draft.marked)
    del draft.marked
    return RunState(**vars(draft))


def _after_start(state: RunState, event: RunStarted) -> RunState:
    """The state after an engine starts, or continues from a step."""
    state = _truncated(_without_results_after(state, event.first_step), event.first_step)
    return replace(
        state,
        step=event.first_step,  # also where the earlier steps were not read
        started=event,
        ended=None,
        threads=None,
        xla=None,
        micro_batches=None,
        work=None,
        phase=None,
        training_paused=False,
        workers_met=None,
        learning_rate=state.learning_rate if event.first_step else event.plan.get("learning_rate"),
        marks=resumed(state.marks, event.first_step),
        step_rate=state.step_rate.restarted(event.first_step),
        earlier_seconds=None if state.started is None and event.first_step else state.seconds_worked,
        last_event_time=event.time,
    )


def _apply(draft: SimpleNamespace, event: Event) -> None:
    draft.last_event_time = max(draft.last_event_time, event.time)
    if mark := mark_of(event, draft.learning_rate):
        kind, step = mark
        draft.marked.setdefault(kind, []).append(step)
    if name := _LATEST.get(type(event)):
        setattr(draft, name, event)
    match event:
        case events.PhaseChanged(phase=Phase.PAUSED | Phase.TRAINING | Phase.SCRIPT as phase):
            draft.training_paused = phase is Phase.PAUSED
        case events.PartStarted(step=step):
            draft.parts.append(Part(event))
            # The part has a model, an optimizer and a first step of its own.
            draft.built, draft.learning_rate, draft.schedule = None, None, ""
            draft.step_rate = draft.step_rate.restarted(step)
        case events.ModelBuilt() if draft.parts:
            draft.parts[-1] = replace(draft.parts[-1], built=event)
        case events.PartEnded() if draft.parts:
            draft.parts[-1] = replace(draft.parts[-1], ended=event)
        case events.Validated(step=step, metrics=metrics):
            for name, value in zip(_series_of(tuple(metrics)), metrics.values(), strict=True):
                points = draft.validation.get(name, ())
                if not isinstance(points, list):
                    points = draft.validation[name] = [*points]
                points.append((step, value))
        case events.LearningRateChanged(step=step, learning_rate=rate, schedule=schedule):
            earlier = (point for point in draft.learning_rates if point[0] < step)
            draft.learning_rate, draft.learning_rates = rate, (*earlier, (step, rate))
            draft.schedule = schedule
        case events.Warned() | events.CommandAnswered() | events.Recovered() | events.PlanChanged():
            draft.notices, draft.notice_count = (*draft.notices[1 - NOTICES :], event), draft.notice_count + 1
            if isinstance(event, events.CommandAnswered) and event.obeyed:
                draft.training_paused = _PAUSED_AFTER.get(event.command, draft.training_paused)


@lru_cache(maxsize=16)
def _series_of(metrics: tuple[str, ...]) -> tuple[str, ...]:
    """Series names of metrics, as other programs may write metrics of any name."""
    return tuple(SeriesNames().scalars(dict.fromkeys(metrics, 0.0)))


def _contiguous(chunks: Sequence[Chunk]) -> Iterator[Sequence[Chunk]]:
    """Split chunks where one does not start at the end of the previous one."""
    breaks = [
        index
        for index, (before, after) in enumerate(pairwise(chunks), start=1)
        if after.first_step != before.first_step + before.count
    ]
    for start, stop in pairwise([0, *breaks, len(chunks)]):
        if start < stop:
            yield chunks[start:stop]


def _after_stretch(state: RunState, stretch: StepRange) -> RunState:
    """The state with the downsampled steps up to a step."""
    curves = curves_of(stretch)
    throughput = curves.pop(THROUGHPUT, RecordedCurve())
    end_times = RecordedCurve.of(stretch.series[TIME], stretch.first_step, stretch.stop_step, stretch.width)
    state = replace(
        state, step=stretch.stop_step, curves=curves, throughput=throughput, step_end_times=end_times, visible_series={}
    )
    return replace(state, learning_rate=latest_learning_rate(state, curves.get(LEARNING_RATE)))


def curves_of(stretch: StepRange) -> dict[str, RecordedCurve]:
    """The curves of a range of steps, including the throughput."""
    return {
        name: RecordedCurve.of(buckets, stretch.first_step, stretch.stop_step, stretch.width)
        for name, buckets in stretch.series.items()
        if name != TIME
    }


def _after_chunks(state: RunState, chunks: Sequence[Chunk]) -> RunState:
    """Append consecutive chunks; the first of them may go back to an earlier step."""
    first = chunks[0].first_step
    state = _truncated(state, first)
    names = list(dict.fromkeys(name for chunk in chunks for name in chunk.series))
    step_rate, seconds = state.step_rate.after(chunks)
    values = np.concatenate([*_columns(chunks, names), *_by_time(chunks, seconds)]).reshape(len(names) + 2, -1)
    before = [*(state.curves.get(name, RecordedCurve()) for name in names), state.throughput, state.step_end_times]
    *curves, throughput, end_times = extended_curve([_padded(curve, first) for curve in before], values)
    state = replace(
        state,
        step=chunks[-1].first_step + chunks[-1].count,
        curves={**state.curves, **dict(zip(names, curves, strict=True))},
        throughput=throughput,
        step_end_times=end_times,
        step_rate=step_rate,
    )
    learning_rate = latest_learning_rate(state, state.curves.get(LEARNING_RATE))
    return state if learning_rate == state.learning_rate else replace(state, learning_rate=learning_rate)


def _columns(chunks: Iterable[Chunk], names: Iterable[str]) -> Iterator[npt.NDArray[np.float32]]:
    """The chunks' parts of every series; NaN where a chunk lacks it."""
    for name in names:
        for chunk in chunks:
            yield chunk.series[name] if name in chunk.series else np.full(chunk.count, math.nan, np.float32)


def _by_time(chunks: Sequence[Chunk], seconds: Sequence[float]) -> tuple[Floats, Floats]:
    """Throughput and end time of each step, with the steps of a chunk evenly spaced.

    Args:
        chunks: Consecutive chunks.
        seconds: Working time of each chunk.
    """
    counts = [chunk.count for chunk in chunks]
    rates = [count / taken if taken > 0 else math.nan for count, taken in zip(counts, seconds, strict=True)]
    seconds_per_step = [taken / count for count, taken in zip(counts, seconds, strict=True)]
    ends = [chunk.ended for chunk in chunks]
    rate, ended, apart, stop = np.repeat(
        np.array([rates, ends, seconds_per_step, [*accumulate(counts)]]), counts, axis=1
    )
    return rate, ended - (stop - 1 - np.arange(len(stop))) * apart


def _padded(curve: RecordedCurve, step: int) -> RecordedCurve:
    return curve.padded(step) if curve.end_step < step else curve


def _without_results_after(state: RunState, step: int) -> RunState:
    """Drop validations and epochs after a step, since training repeats from there."""
    if state.validated and state.validated.step > step:
        kept = {name: tuple(point for point in points if point[0] <= step) for name, points in state.validation.items()}
        state = replace(state, validation=kept, validated=None)
    if state.epoch and state.epoch.step > step:
        state = replace(state, epoch=None)
    return state


def _truncated(state: RunState, step: int) -> RunState:
    """Drop the steps from ``step`` on."""
    if state.step <= step:
        return state
    curves = {name: curve.truncate(step) for name, curve in state.curves.items()}
    return replace(
        state,
        step=step,
        curves=curves,
        throughput=state.throughput.truncate(step),
        step_end_times=state.step_end_times.truncate(step),
        device_curves={},
        visible_series={},
    )
