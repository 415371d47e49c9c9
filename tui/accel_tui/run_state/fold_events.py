"""Extends the state of a run by further events and steps: a pure function."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from accel_engine import events
from accel_engine.events import Event, RunStarted
from accel_engine.run import Chunk, Update
from accel_engine.run.history.history import Points, fold
from accel_engine.run.store.downsampled_steps import StepRange
from accel_engine.run.store.series_names import LEARNING_RATE, SeriesNames, rounded_rate
from accel_engine.run.store.steps import THROUGHPUT, TIME
from accel_engine.text import printable_fields
from accel_tui.run_state.curve import Floats, RecordedCurve, extended_curve
from accel_tui.run_state.device_meter import record_device
from accel_tui.run_state.marks import MarkKind, extended_marks, mark_of, resumed
from accel_tui.run_state.state import Notice, RunState

NOTICES = 200
"""Maximum number of notices, and of other listed events, in a state."""


HAPPENED = (
    events.RunStarted,
    events.PartStarted,
    events.PartEnded,
    events.CheckpointSaved,
    events.LearningRateChanged,
    events.XlaTried,
    events.RunEnded,
)
"""The events that a state keeps besides notices, to list what happened."""


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
    starts = [index for index, event in enumerate(new) if isinstance(event, RunStarted)]
    for first, stop in pairwise([0, *starts, len(new)]):
        if first < stop:
            state = _after_engine(state, new[first:stop])
    return state


def _after_engine(state: RunState, new: Sequence[Event]) -> RunState:
    """The state after events of one engine, of which the first may be its start."""
    if isinstance(new[0], RunStarted):
        state = _restarted(state, new[0].first_step)
    marked, notices = dict[MarkKind, list[int]](), list[Notice]()
    step_rate, learning_rate, time = state.step_rate, state.learning_rate, state.time
    happened = [event for event in new if isinstance(event, HAPPENED) and not _is_first_rate(event)]
    for event in new:
        if mark := mark_of(event, learning_rate):
            marked.setdefault(mark[0], []).append(mark[1])
        match event:
            case RunStarted(first_step=0, plan=plan):
                learning_rate = plan.get("learning_rate")
            case events.PartStarted(step=step):
                learning_rate, step_rate = None, step_rate.restarted(step)
            case events.LearningRateChanged(learning_rate=rate):
                learning_rate = rate
            case events.TimeMeasured():
                time = event
            case events.Warned() | events.CommandAnswered() | events.Recovered() | events.PlanChanged():
                notices.append(event)
    return replace(
        fold(state, new),
        validation=_with_validations(state.validation, new),
        marks=extended_marks(state.marks, marked),
        notices=(*state.notices, *notices)[-NOTICES:],
        notice_count=state.notice_count + len(notices),
        happened=(*state.happened, *happened)[-NOTICES:] if happened else state.happened,
        step_rate=step_rate,
        time=time,
    )


def _is_first_rate(event: Event) -> bool:
    """Whether an event tells the learning rate that a run begins with."""
    return isinstance(event, events.LearningRateChanged) and event.step == 0


def _with_validations(validation: Mapping[str, Points], new: Iterable[Event]) -> Mapping[str, Points]:
    """The points of validations with further ones; the same object if there are none."""
    added: dict[str, list[tuple[int, float]]] = {}
    for event in new:
        if isinstance(event, events.Validated):
            for name, value in zip(_series_of(tuple(event.metrics)), event.metrics.values(), strict=True):
                added.setdefault(name, []).append((event.step, value))
    longer = {name: (*validation.get(name, ()), *points) for name, points in added.items()}
    return {**validation, **longer} if added else validation


def _restarted(state: RunState, step: int) -> RunState:
    """The state as far as an engine continues it from a step; the steps before may not have been read."""
    state = _truncated(state, step)
    validation = state.validation
    if state.validated and state.validated.step > step:
        validation = {name: tuple(point for point in points if point[0] <= step) for name, points in validation.items()}
    return replace(
        state,
        step=step,
        validation=validation,
        marks=resumed(state.marks, step),
        step_rate=state.step_rate.restarted(step),
    )


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
    return replace(state, learning_rate=_latest_learning_rate(state))


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
    learning_rate = _latest_learning_rate(state)
    return state if learning_rate == state.learning_rate else replace(state, learning_rate=learning_rate)


def _latest_learning_rate(state: RunState) -> float | None:
    """The learning rate of the latest step, or the one set for the next."""
    curve = state.curves.get(LEARNING_RATE)
    is_set_later = bool(state.learning_rates) and state.learning_rates[-1][0] >= state.step
    if curve is None or math.isnan(curve.last_value) or is_set_later:
        return state.learning_rate
    return rounded_rate(curve.last_value)


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
