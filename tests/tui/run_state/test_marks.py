"""What is marked of a run, in bounded memory."""

from pathlib import Path

import pytest

from accel_engine.events import (
    CheckpointSaved,
    CommandAnswered,
    EpochEnded,
    LearningRateChanged,
    MicroBatchesTried,
    RunStarted,
    Validated,
    XlaTried,
)
from accel_engine.run import Update
from accel_tui.run_state.fold_events import apply_update
from accel_tui.run_state.marks import MAX_MARKS, MarkKind, Track, with_advice
from accel_tui.run_state.state import RunState

PLAN = {"learning_rate": 1e-3}


def started(first_step: int = 0) -> RunStarted:
    return RunStarted(time=0.0, run="r", name="", plan=PLAN, first_step=first_step, pid=1, host="h", versions={})


def epoch(number: int, steps: int = 100) -> EpochEnded:
    return EpochEnded(time=0.0, epoch=number, step=number * steps, metrics={}, seconds=1.0)


def rate(step: int, value: float) -> LearningRateChanged:
    return LearningRateChanged(time=0.0, step=step, learning_rate=value)


def answered(command: str, step: int, *, obeyed: bool = True) -> CommandAnswered:
    return CommandAnswered(time=0.0, command=command, who="me", obeyed=obeyed, answer="", step=step)


def saved(step: int) -> CheckpointSaved:
    return CheckpointSaved(time=0.0, epoch=1, step=step, path=str(Path("checkpoints/1")), seconds=1.0)


def validated(step: int) -> Validated:
    return Validated(time=0.0, epoch=1, step=step, metrics={}, seconds=1.0)


def after(*events: object) -> dict[MarkKind, tuple[int, ...]]:
    state = apply_update(RunState(), Update(events=events))  # type: ignore[arg-type]
    return {kind: track.steps for kind, track in state.marks.items()}


def test_each_kind_is_where_it_happened() -> None:
    xla = XlaTried(time=0.0, step=30, xla=True, plain=1.0, compiled=2.0, remembered=False)
    parts = MicroBatchesTried(time=0.0, step=40, micro_batches=4, tried=4, whole=1.0, split=2.0, remembered=False)
    assert after(
        started(),
        xla,
        parts,
        epoch(1),
        validated(100),
        saved(100),
        rate(110, 1e-4),
        rate(120, 1e-2),
        answered("pause", 130),
        epoch(2),
    ) == {
        MarkKind.XLA: (30,),
        MarkKind.MICRO_BATCHES: (40,),
        MarkKind.EPOCH: (100, 200),
        MarkKind.VALIDATION: (100,),
        MarkKind.CHECKPOINT: (100,),
        MarkKind.LEARNING_RATE_DOWN: (110,),
        MarkKind.LEARNING_RATE_UP: (120,),
        MarkKind.PAUSED: (130,),
    }


def test_what_changed_nothing_is_not_marked() -> None:
    remembered = XlaTried(time=0.0, step=0, xla=True, plain=1.0, compiled=2.0, remembered=True)
    assert after(started(), remembered, rate(10, 1e-3), answered("pause", 5, obeyed=False), answered("resume", 6)) == {}


def test_a_run_that_goes_on_from_a_checkpoint_forgets_what_came_after_it() -> None:
    assert after(started(), epoch(1), epoch(2), saved(200), epoch(3), started(200), epoch(3)) == {
        MarkKind.EPOCH: (100, 200, 300),
        MarkKind.CHECKPOINT: (200,),
        MarkKind.RESUMED: (200,),
    }


@pytest.mark.parametrize("count", [1, MAX_MARKS, MAX_MARKS + 1, 5 * MAX_MARKS + 3])
def test_a_track_keeps_every_nth_of_as_many_events_as_there_are(count: int) -> None:
    track = Track().extended(range(7, 7 * count + 1, 7))
    assert len(track.steps) <= MAX_MARKS
    assert 2 * len(track.steps) + 1 >= min(count, MAX_MARKS)
    assert track.count == count
    assert track.steps == tuple(7 * number for number in range(track.stride, count + 1, track.stride))


def test_a_track_that_was_cut_goes_on_in_step() -> None:
    track = Track().extended(range(1, MAX_MARKS + 11))
    assert track.stride == 2
    track = track.cut(501)
    assert (track.steps[-1], track.count) == (500, 500)
    for number in range(501, 505):
        track = track.extended([number])
    assert track.steps[-3:] == (500, 502, 504)


def test_advice_is_marked_in_the_order_of_steps_and_leaves_no_trace_without() -> None:
    marks = {MarkKind.EPOCH: Track().extended([100])}
    assert with_advice(marks, [70, 3, 70])[MarkKind.ADVICE].steps == (3, 70)
    assert with_advice(marks, []) is marks
